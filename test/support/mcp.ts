import { bearer, JSON_TYPE, post } from './chat.ts';
import type { TestGateway } from './gateway.ts';
import type { Answer } from './request.ts';

export interface McpOptions {
  /** Null: no credential. */
  readonly token?: string | null;
  readonly headers?: readonly (readonly [string, string])[];
  readonly id?: string | number;
}

/** Posts a body to `/mcp` with the headers of the specification's own call: a key, a content type, no `Accept`. */
export function postMcp(
  gateway: TestGateway,
  body: unknown,
  { token, headers = [] }: McpOptions = {},
): Promise<Answer> {
  const credential = token === null ? [] : [bearer(token ?? gateway.firstRun.gatewayKey)];
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return post(gateway, text, [...credential, JSON_TYPE, ...headers], { path: '/mcp' });
}

/** Sends one request of the handshake era. */
export const rpc = (
  gateway: TestGateway,
  method: string,
  params: object = {},
  options: McpOptions = {},
): Promise<Answer> => postMcp(gateway, { jsonrpc: '2.0', id: options.id ?? 1, method, params }, options);

/** Sends one request of the stateless era, with the headers that must mirror its body. */
export function statelessRpc(
  gateway: TestGateway,
  method: string,
  params: Readonly<Record<string, unknown>> = {},
  options: McpOptions = {},
): Promise<Answer> {
  const version = '2026-07-28';
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  };
  const name = typeof params.name === 'string' ? [['mcp-name', params.name] as const] : [];
  const headers = [['mcp-protocol-version', version] as const, ['mcp-method', method] as const, ...name];
  return rpc(gateway, method, { ...params, _meta }, { ...options, headers: [...headers, ...(options.headers ?? [])] });
}

export const callTool = (gateway: TestGateway, name: string, args: object, options: McpOptions = {}): Promise<Answer> =>
  rpc(gateway, 'tools/call', { name, arguments: args }, options);

/** A tool's result as its caller gets it. */
export interface ToolResult {
  readonly content: readonly {
    readonly type: string;
    readonly text?: string;
    readonly data?: string;
    readonly mimeType?: string;
  }[];
  readonly isError?: boolean;
  readonly structuredContent?: unknown;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

const isToolResult = (value: unknown): value is ToolResult => isObject(value) && Array.isArray(value.content);

/** The result in a JSON-RPC response of status 200. */
export function resultOf({ status, json, text }: Answer): unknown {
  if (status === 200 && isObject(json) && 'result' in json) return json.result;
  throw new Error(`no result: ${status} ${text}`);
}

export function toolResultOf(answer: Answer): ToolResult {
  const result = resultOf(answer);
  if (isToolResult(result)) return result;
  throw new Error(`no tool result: ${answer.text}`);
}

/** The error of a JSON-RPC response, whatever its status. */
export function rpcErrorOf({ json, text }: Answer): unknown {
  if (isObject(json) && 'error' in json) return json.error;
  throw new Error(`no JSON-RPC error: ${text}`);
}

/** The JSON-RPC messages of an answer of server-sent events. */
export const messagesOf = (text: string): unknown[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => JSON.parse(line.slice('data: '.length)));

import {
  type CallToolResult,
  createMcpHandler,
  isLegacyRequest,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { toApiError } from '../core/authorize.ts';
import { checkContent } from '../domain/check-shape.ts';
import type { ApiError } from '../domain/errors.ts';
import { type Validator, validator } from '../lib/schemas.ts';
import { field, type McpTool, type ToolCaller } from './tool.ts';

const validateInitializeParams = validator('InitializeParams');
const validateToolCallParams = validator('ToolCallParams');
const validateToolListParams = validator('ToolListParams');

const INSTRUCTIONS =
  'Portcullis is a gateway to many large language models. Call list-models to see the models that your API key can use, then chat with one of them. Call list-image-models before you generate images.';

/** Milliseconds between two signs of life of a tool that works long. */
const PROGRESS_EVERY = 10_000;

/** Characters of a progress token. */
const MAX_TOKEN_LENGTH = 256;

/** One HTTP request to `/mcp`. */
export interface McpCaller extends ToolCaller {
  /** Told of what made a tool fail. */
  onFailure(error: ApiError): void;
}

/** Form of the answer: whichever fits, or only one of them. */
export type ReplyForm = 'either' | 'json' | 'events';

export interface McpServer {
  /** The tool that a JSON-RPC message calls, if there is such a tool. */
  toolOf(message: object): string | undefined;
  /** Answers a JSON-RPC message. `request` has its headers and its signal; its body is `message`. */
  answer(request: Request, message: object, form: ReplyForm, caller: McpCaller): Promise<Response>;
}

/** Changes a server before it answers a request: the conformance suite's fixture does. */
export type PrepareMcp = (server: Server) => void;

export interface McpServerOptions {
  readonly tools: readonly McpTool[];
  readonly prepare?: PrepareMcp | undefined;
  readonly version: string;
  readonly keepAliveMs: number;
  /** Aborted when the gateway stops: then streams that wait for notifications end. */
  readonly closing: AbortSignal;
}

/**
 * The tools over both eras of MCP: the handshake revisions (2024-11-05 to 2025-11-25) and the stateless one (2026-07-28). No
 * revision gets a session: whatever a request needs comes with it.
 */
export function createMcpServer({ tools, version, keepAliveMs, closing, prepare }: McpServerOptions): McpServer {
  const byName = new Map(tools.map((tool) => [tool.definition.name, tool]));
  const definitions = tools.map(({ definition }) => definition);

  /** The SDK wants one for each request. */
  function serverFor(caller: McpCaller, hasProgress: boolean): Server {
    const server = new Server(
      { name: 'portcullis', title: 'Portcullis', version },
      { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
    );
    server.setRequestHandler('tools/list', () => ({ tools: definitions }));
    server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
      const tool = byName.get(params.name);
      if (tool === undefined)
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool ${params.name}.`);
      const token = hasProgress ? mcpReq._meta?.progressToken : undefined;
      const done = token === undefined || isTooLong(token) ? undefined : reportProgress(token, mcpReq.notify);
      try {
        return await tool.call(caller, params.arguments ?? {});
      } catch (thrown) {
        const error = toApiError(thrown);
        caller.onFailure(error);
        return failure(error);
      } finally {
        done?.();
      }
    });
    prepare?.(server);
    return server;
  }

  const callers = new WeakMap<Request, { caller: McpCaller; hasProgress: boolean }>();
  const modern = (responseMode: 'auto' | 'sse') =>
    createMcpHandler(
      ({ requestInfo }) => {
        const known = requestInfo && callers.get(requestInfo);
        if (known === undefined) throw new Error('a request came past the gateway');
        return serverFor(known.caller, known.hasProgress);
      },
      { legacy: 'reject', responseMode, keepAliveMs },
    );
  const [auto, events] = [modern('auto'), modern('sse')];

  closing.addEventListener('abort', () => {
    for (const handler of [auto, events]) void handler.close();
  });

  return {
    toolOf(message) {
      const name = field(message, 'method') === 'tools/call' ? field(field(message, 'params'), 'name') : undefined;
      return typeof name === 'string' && byName.has(name) ? name : undefined;
    },
    async answer(request, message, form, caller) {
      const hasProgress = form !== 'json';
      const isStateless = !(await isLegacyRequest(request, message));
      const fault = paramsFault(message, isStateless ? STATELESS_PARAMS : PARAMS);
      if (fault !== undefined) return fault;
      if (isStateless) {
        callers.set(request, { caller, hasProgress });
        return (form === 'events' ? events : auto).fetch(request, { parsedBody: message });
      }
      const streams = form === 'events' || (form === 'either' && wantsProgress(message));
      const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: !streams, keepAliveMs });
      await serverFor(caller, streams).connect(transport);
      return transport.handleRequest(request, { parsedBody: message });
    },
  };
}

type Validators = ReadonlyMap<unknown, Validator<unknown>>;

/** Validators of `params`, by method. */
const STATELESS_PARAMS: Validators = new Map<unknown, Validator<unknown>>([
  ['tools/call', validateToolCallParams],
  ['tools/list', validateToolListParams],
]);

const PARAMS: Validators = new Map<unknown, Validator<unknown>>([
  ...STATELESS_PARAMS,
  ['initialize', validateInitializeParams],
]);

/** The answer to a request whose `params` are wrong: the SDK would call that a fault of ours, in words of its own. */
function paramsFault(message: object, validators: Validators): Response | undefined {
  const id = field(message, 'id');
  const params = field(message, 'params') ?? {};
  const validator = validators.get(field(message, 'method'));
  const isRequest = (typeof id === 'string' || typeof id === 'number') && !Array.isArray(params);
  if (validator === undefined || !isRequest || typeof params !== 'object') return undefined;
  try {
    checkContent(validator, params);
    return undefined;
  } catch (error) {
    const text = `Invalid params: ${toApiError(error).message}`;
    return Response.json({ jsonrpc: '2.0', id, error: { code: ProtocolErrorCode.InvalidParams, message: text } });
  }
}

/** The refusal, or the failure, in the words that a REST caller gets. */
const failure = ({ message, code }: ApiError): CallToolResult => ({
  content: [{ type: 'text', text: message }],
  isError: true,
  _meta: { 'portcullis/code': code },
});

type Notify = (notification: { method: 'notifications/progress'; params: Record<string, unknown> }) => Promise<void>;

/** Tells a client that asked for it every ten seconds that its call is still running. @returns ends it */
function reportProgress(progressToken: string | number, notify: Notify): () => void {
  const startedAt = performance.now();
  const timer = setInterval(() => {
    const progress = Math.round((performance.now() - startedAt) / 1000);
    const params = { progressToken, progress, message: `Running for ${progress} seconds.` };
    // The client may have left.
    notify({ method: 'notifications/progress', params }).catch(() => {});
  }, PROGRESS_EVERY);
  return () => clearInterval(timer);
}

/** It is repeated every time, whether the client reads or not. */
const isTooLong = (token: string | number): boolean => String(token).length > MAX_TOKEN_LENGTH;

const wantsProgress = (message: object): boolean =>
  field(field(field(message, 'params'), '_meta'), 'progressToken') !== undefined;

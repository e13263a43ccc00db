import type { IncomingMessage, ServerResponse } from 'node:http';

const MAX_BODY_BYTES = 64 * 1024 * 1024;

/** The whole body as text; undefined when it is larger than anything the gateway sends. */
export async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, bytes).toString('utf8');
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  sendText(response, status, JSON.stringify(body));
}

function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

export function sendError(response: ServerResponse, status: number, code: string, message: string): void {
  const type = status >= 500 ? 'server_error' : 'invalid_request_error';
  sendJson(response, status, { error: { message, type, param: null, code } });
}

export function beginEvents(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  response.flushHeaders();
}

export function sendEvent(response: ServerResponse, data: string, name?: string): void {
  response.write(name === undefined ? `data: ${data}\n\n` : `event: ${name}\ndata: ${data}\n\n`);
}

/** Failure of the model that fails on request: a status, or one of the ways in which a success goes wrong. */
export type Fault = number | 'cut' | 'empty' | 'error' | 'hang' | 'malformed' | 'stall';

const NAMES: readonly Exclude<Fault, number>[] = ['cut', 'empty', 'error', 'hang', 'malformed', 'stall'];
const DIRECTIVE = /\bfail:([a-z]+|[45][0-9]{2})\b/;
const DEFAULT = 500;

/** The directive `fail:<fault>` in the text; undefined without one. */
export function faultIn(text: string): Fault | undefined {
  const wanted = DIRECTIVE.exec(text)?.[1];
  return NAMES.find((name) => name === wanted) ?? (Number(wanted) || undefined);
}

/** Fault for the model that always fails: as above, and status 500 without a directive. */
export const faultOf = (text: string): Fault => faultIn(text) ?? DEFAULT;

/** Form of a fault, by the operation that the answer would have belonged to. */
interface FaultForm {
  readonly stream: boolean;
  /** A success that holds nothing. */
  readonly empty: object;
}

const BEGINNING =
  '{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"So f"},"finish_reason":null}]}';

/** Answers with the fault. After `hang` and `stall` the response stays open until the caller leaves. */
export function sendFault(response: ServerResponse, fault: Fault, { stream, empty }: FaultForm): void {
  if (fault === 'hang') return;
  if (typeof fault === 'number') {
    if (fault === 429) response.setHeader('retry-after', '1');
    sendError(response, fault, 'sandbox_fault', `The sandbox fails with status ${fault}, as asked.`);
  } else if (stream) {
    sendStreamFault(response, fault);
  } else {
    sendWholeFault(response, fault, empty);
  }
}

function sendStreamFault(response: ServerResponse, fault: Exclude<Fault, number | 'hang'>): void {
  beginEvents(response);
  if (fault !== 'empty') sendEvent(response, BEGINNING);
  if (fault === 'malformed') sendEvent(response, '{"choices":[{"index":0,');
  if (fault === 'error') sendEvent(response, '{"error":{"message":"The sandbox fails midway, as asked."}}');
  if (fault === 'empty') sendEvent(response, '[DONE]');
  if (fault === 'cut') response.write('', () => response.destroy());
  else if (fault !== 'stall') response.end();
}

function sendWholeFault(response: ServerResponse, fault: Exclude<Fault, number | 'hang'>, empty: object): void {
  switch (fault) {
    case 'empty':
      sendJson(response, 200, empty);
      return;
    case 'error':
      sendJson(response, 200, { error: { message: 'The sandbox fails, as asked.' } });
      return;
    case 'malformed':
      sendText(response, 200, '{"object":"chat.completion","choices":[{');
      return;
    case 'cut':
    case 'stall':
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1000 });
      response.write('{"object":"chat.', () => {
        if (fault === 'cut') response.destroy();
      });
  }
}

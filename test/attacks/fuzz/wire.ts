// Answers as they stand on a connection, read strictly.
import type { IncomingHttpHeaders } from 'node:http';
import type { Answer } from '../../support/request.ts';

const HEAD_END = '\r\n\r\n';

interface Head {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
}

/** @throws Error for a head that is not HTTP */
function parseHead(text: string): Head {
  const [first = '', ...lines] = text.split('\r\n');
  const status = /^HTTP\/1\.[01] ([1-5]\d\d)(?: [ -~]*)?$/.exec(first)?.[1];
  if (status === undefined) throw new Error(`a status line "${first.slice(0, 100)}"`);
  const headers: IncomingHttpHeaders = {};
  for (const line of lines) {
    const [, name, value = ''] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([\t -~\u0080-\u00ff]*)$/.exec(line) ?? [];
    if (name === undefined) throw new Error(`a header line "${line.slice(0, 100)}"`);
    const lower = name.toLowerCase();
    if (lower === 'content-length' && headers[lower] !== undefined) throw new Error('two content lengths');
    headers[lower] = value;
  }
  if (headers['transfer-encoding'] !== undefined && headers['content-length'] !== undefined)
    throw new Error('two framings');
  return { status: Number(status), headers };
}

interface Body {
  readonly text: string;
  readonly end: number;
}

/** Undefined: it has not come whole. @throws Error for pieces that are none */
function chunkedBody(bytes: Buffer, start: number): Body | undefined {
  const chunks: Buffer[] = [];
  for (let at = start; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd === -1) return undefined;
    const line = bytes.toString('latin1', at, lineEnd);
    if (!/^[0-9a-f]+$/i.test(line)) throw new Error(`a chunk size "${line.slice(0, 50)}"`);
    const size = Number.parseInt(line, 16);
    const end = lineEnd + 2 + size;
    if (bytes.length < end + 2) return undefined;
    if (bytes.toString('latin1', end, end + 2) !== '\r\n') throw new Error('a chunk that does not end');
    chunks.push(bytes.subarray(lineEnd + 2, end));
    at = end + 2;
    if (size === 0) return { text: Buffer.concat(chunks).toString('utf8'), end: at };
  }
}

function bodyOf(bytes: Buffer, start: number, { status, headers }: Head, hasNone: boolean): Body | undefined {
  if (hasNone || status < 200 || status === 204 || status === 304) return { text: '', end: start };
  if (headers['transfer-encoding'] === 'chunked') return chunkedBody(bytes, start);
  const length = headers['content-length'];
  if (length === undefined) return { text: bytes.toString('utf8', start), end: bytes.length };
  if (!/^\d+$/.test(length)) throw new Error(`a content length "${length}"`);
  const end = start + Number(length);
  return bytes.length < end ? undefined : { text: bytes.toString('utf8', start, end), end };
}

function parsed(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch {
    return undefined;
  }
}

/**
 * The answers that have come whole, in order, but for 1xx; one that the connection's end has cut off is left out.
 * @param isHead whether the request of that number was a HEAD. @throws Error for what is not HTTP
 */
export function answersIn(bytes: Buffer, isHead: (answer: number) => boolean = () => false): Answer[] {
  const answers: Answer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const headEnd = bytes.indexOf(HEAD_END, at);
    if (headEnd === -1) return answers;
    const head = parseHead(bytes.toString('latin1', at, headEnd));
    const body = bodyOf(bytes, headEnd + HEAD_END.length, head, isHead(answers.length));
    if (body === undefined) return answers;
    if (head.status >= 200) answers.push({ ...head, text: body.text, json: parsed(body.text) });
    at = body.end;
  }
  return answers;
}

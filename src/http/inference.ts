import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { ModelListOptions } from '../catalog/model-list.ts';
import { toApiError } from '../core/authorize.ts';
import { completeChat } from '../core/chat.ts';
import { generateImage } from '../core/generate-image.ts';
import type { ListModels, ModelListBytes } from '../core/list-models.ts';
import { moderate } from '../core/moderate.ts';
import { type JsonText, WrittenAnswer } from '../core/provider-answer.ts';
import { lacksModel, unknownModel, withDefaultModel } from '../core/resolve.ts';
import { type ApiError, invalidRequest } from '../domain/errors.ts';
import { validator } from '../lib/schemas.ts';
import type { AppContext, MetadataForm } from './app-context.ts';
import { apiKeyToken, callContext, limitKey, principalOf, setPrincipal } from './authenticate.ts';
import { checkedBody } from './body.ts';
import { pathParameter } from './master/master-route.ts';
import type { GatewayId } from './operations/gateway-operations.ts';
import { isOurFault } from './pipeline.ts';
import { flag } from './query.ts';
import type { Handlers } from './routes.ts';
import type { AppMiddleware, RequestContext } from './state.ts';

/** `POST /v1/chat/completions`: OpenAI's request and answer, JSON or server-sent events. */
export function chatCompletionsRoute(app: AppContext): AppMiddleware {
  return async (ctx) => {
    if (lacksModel(ctx.state.body)) {
      ctx.state.body = await withDefaultModel(app.findReach, principalOf(ctx), ctx.state.body);
    }
    const request = checkedBody(ctx, validator('ChatRequest'), app.telemetry);
    const form = metadataForm(ctx, app.metadataForm);
    const outcome = await completeChat(app, principalOf(ctx), callContext(ctx), request);
    if (outcome.kind === 'completion') return sendJsonText(ctx, writtenInForm(outcome.completion, form));
    await sendEvents(app, ctx, outcome.chunks, form, { end: '[DONE]' });
  };
}

/** `POST /v1/images/generations`: OpenAI's request and answer, JSON or server-sent events. */
export function imagesRoute(app: AppContext): AppMiddleware {
  return async (ctx) => {
    const request = checkedBody(ctx, validator('ImageRequest'), app.telemetry);
    const form = metadataForm(ctx, app.metadataForm);
    const outcome = await generateImage(app, principalOf(ctx), callContext(ctx), request);
    if (outcome.kind === 'answer') return sendJsonText(ctx, writtenInForm(outcome.answer, form));
    await sendEvents(app, ctx, outcome.events, form, { nameOf: ({ type }) => type });
  };
}

/** `POST /v1/moderations`: OpenAI's request and answer. */
export function moderationsRoute(app: AppContext): AppMiddleware {
  return async (ctx) => {
    const request = checkedBody(ctx, validator('ModerationRequest'), app.telemetry);
    const form = metadataForm(ctx, app.metadataForm);
    const answer = await moderate(app, principalOf(ctx), callContext(ctx), request);
    return sendJsonText(ctx, writtenInForm(answer, form));
  };
}

/** Which list the caller gets: the catalogue as everyone has it, all that their organization could use, or what they may. */
type Which = 'catalogue' | 'all' | 'usable';

const listOptions = (ctx: RequestContext): ModelListOptions => ({
  includeDeactivated: flag(ctx, 'include_deactivated'),
  excludeDeprecated: flag(ctx, 'exclude_deprecated'),
  noTraining: flag(ctx, 'no_training'),
  mapped: flag(ctx, 'mapped'),
});

/** Sets the headers of either case. @throws ApiError 400, 401, 429, 503 */
async function whichList(ctx: RequestContext, app: AppContext): Promise<Which> {
  const includeRestricted = flag(ctx, 'include_restricted');
  const token = apiKeyToken(ctx.req);
  if (token === undefined && ctx.req.headers.authorization === undefined) {
    ctx.set('cache-control', 'public, no-cache');
    return 'catalogue';
  }
  setPrincipal(ctx, await app.authenticate(token));
  limitKey(ctx, app, 'models');
  ctx.set('cache-control', 'private, no-store');
  return includeRestricted ? 'all' : 'usable';
}

async function listOf(
  ctx: RequestContext,
  listModels: ListModels,
  options: ModelListOptions,
  which: Which,
): Promise<ModelListBytes> {
  if (which === 'catalogue') return (await listModels(undefined, options)).list;
  const caller = { principal: principalOf(ctx), clientIp: ctx.state.clientIp };
  const { list, policyRevision } = await listModels(caller, options, which);
  if (policyRevision !== undefined) ctx.set('x-policy-revision', policyRevision);
  return list;
}

/** The whole catalogue without a key, what the key may use with one (src/http/README.md, "Endpoints"). */
function listRoute(app: AppContext): AppMiddleware {
  return async (ctx) => {
    const options = listOptions(ctx);
    const which = await whichList(ctx, app);
    const { bytes, etag } = await listOf(ctx, app.listModels, options, which);
    ctx.type = 'application/json';
    ctx.status = 200;
    if (which === 'catalogue') ctx.set('etag', etag);
    if (which === 'catalogue' && ctx.fresh) ctx.status = 304;
    else ctx.body = bytes;
  };
}

/** One entry of the list, by canonical id, alias or `provider/model`; the list's query parameters hold here too. */
function oneRoute(app: AppContext): AppMiddleware {
  return async (ctx) => {
    const name = pathParameter(ctx, 'id');
    const options = listOptions(ctx);
    const which = await whichList(ctx, app);
    const find = async (mapped: boolean): Promise<Buffer | undefined> =>
      (await listOf(ctx, app.listModels, { ...options, mapped }, which)).find(name);
    const model = (await find(false)) ?? (name.includes('/') ? await find(true) : undefined);
    if (model === undefined) throw unknownModel(name, (await listOf(ctx, app.listModels, options, which)).names());
    ctx.type = 'application/json';
    ctx.body = model;
  };
}

/** `GET /v1/models` and `GET /v1/models/{id}`, whose id may hold `/`, encoded or not. */
export const modelsHandlers = (app: AppContext) =>
  ({
    listModels: listRoute(app),
    getModel: oneRoute(app),
  }) satisfies Partial<Handlers<GatewayId>>;

/** Bytes that are written at once: the client of a large answer is seen to take it piece by piece (`Connections`). */
const MOST_AT_ONCE = 256 * 1024;

/**
 * Answers 200 with written JSON, past Koa's own `respond`, whose work on type, length and status a busy route can do without.
 * @returns for a large answer: resolves when it is written
 */
function sendJsonText(ctx: RequestContext, json: JsonText): Promise<void> | undefined {
  if (typeof json !== 'string') return sendLarge(ctx, json);
  if (json.length > MOST_AT_ONCE) return sendLarge(ctx, [Buffer.from(json)]);
  // As a string, Node sends it in one piece with the head.
  begin(ctx, Buffer.byteLength(json)).end(json);
  return undefined;
}

async function sendLarge(ctx: RequestContext, pieces: readonly Uint8Array[]): Promise<void> {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const res = begin(ctx, length);
  await writeInPieces(res, pieces, ctx.state.signal);
  res.end();
}

/** Resolves when all is written, or the client has left. */
async function writeInPieces(res: ServerResponse, pieces: readonly Uint8Array[], signal: AbortSignal): Promise<void> {
  for (const piece of pieces) {
    for (let at = 0; at < piece.length && !signal.aborted; at += MOST_AT_ONCE) {
      if (!res.write(piece.subarray(at, at + MOST_AT_ONCE))) await drained(res, signal);
    }
  }
}

function begin(ctx: RequestContext, length: number): ServerResponse {
  ctx.respond = false;
  return ctx.res.writeHead(200, { 'content-type': 'application/json; charset=utf-8', 'content-length': length });
}

/**
 * Form that the caller asks for by the header `x-metadata-form`, else the configured one.
 * @throws ApiError 400 for another word
 */
function metadataForm({ req }: Pick<RequestContext, 'req'>, configured: MetadataForm): MetadataForm {
  const asked = req.headers['x-metadata-form'];
  if (asked === undefined) return configured;
  if (asked === 'object' || asked === 'strings') return asked;
  throw invalidRequest('The header x-metadata-form must be object or strings.');
}

/** An answer, or a chunk of one, with its `metadata` in a form. Lists become JSON text. */
function inForm<T extends { readonly metadata?: object }>(answer: T, form: MetadataForm): object {
  const { metadata } = answer;
  if (form === 'object' || metadata === undefined) return answer;
  const strings = Object.entries(metadata).map(([name, value]) => [
    name,
    typeof value === 'object' ? JSON.stringify(value) : String(value),
  ]);
  return { ...answer, metadata: Object.fromEntries(strings) };
}

/** Brings the metadata into that form for an answer that is already written except for the gateway's fields. */
const writtenInForm = (answer: WrittenAnswer<{ readonly metadata?: object }>, form: MetadataForm): JsonText =>
  answer.json(inForm(answer.ours, form));

/** Answers a call with a stream of events, each with its `metadata` in a form. */
const sendEvents = <Event extends { readonly metadata?: object }>(
  app: AppContext,
  ctx: RequestContext,
  events: AsyncIterable<Event | WrittenAnswer<Event>>,
  form: MetadataForm,
  { nameOf, end }: Pick<EventStreamOptions<Event>, 'nameOf' | 'end'>,
): Promise<void> =>
  sendFormed(app, ctx, events, {
    ...(nameOf === undefined ? {} : { nameOf: (event) => nameOf(event instanceof WrittenAnswer ? event.ours : event) }),
    ...(end === undefined ? {} : { end }),
    formed: (event) => (event instanceof WrittenAnswer ? writtenInForm(event, form) : inForm(event, form)),
  });

/** Answers with a stream of events, each as `formed` gives it. */
export async function sendFormed<Chunk extends object>(
  { telemetry, keepAliveMs }: Pick<AppContext, 'telemetry' | 'keepAliveMs'>,
  ctx: RequestContext,
  chunks: AsyncIterable<Chunk>,
  options: Pick<EventStreamOptions<Chunk>, 'formed' | 'nameOf' | 'end'>,
): Promise<void> {
  await writeEventStream(ctx.res, chunks, {
    ...options,
    signal: ctx.state.signal,
    keepAliveMs,
    onFailure(failure) {
      ctx.state.errorCode = failure.code;
      // The attempt logs a stream that a provider broke.
      if (isOurFault(failure)) telemetry.failure(ctx.state.requestId, failure);
    },
  });
  ctx.respond = false;
}

interface EventStreamOptions<Chunk extends object> {
  /** Aborted when the client has left. */
  signal: AbortSignal;
  /** Milliseconds without a byte after which a comment line keeps proxies from closing the connection. */
  keepAliveMs: number;
  /** A chunk as this caller wants it, as an object or as JSON. */
  formed(chunk: Chunk): object | JsonText;
  /** The SSE name of an event. Default: events have none. */
  nameOf?(chunk: Chunk): string;
  /** Data of one more event that says that nothing follows. Default: none. */
  end?: string;
  /** Told of a failure after the first byte, which the status can no longer tell. */
  onFailure(failure: ApiError): void;
}

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  'x-accel-buffering': 'no',
};

const END = Buffer.from('\n\n');

/** Characters that are held until they are written: beyond, no back-pressure would reach them. */
const MOST_JOINED = 16 * 1024;

/**
 * An answer of server-sent events. What one turn of the event loop brings, as a rule one read of the upstream, is written in one
 * piece: a write costs more than an event.
 */
class EventWriter {
  readonly #res: ServerResponse;
  readonly #signal: AbortSignal;
  readonly #quiet: NodeJS.Timeout;
  #joined = '';
  #isWithinEvent = false;

  constructor(res: ServerResponse, keepAliveMs: number, signal: AbortSignal) {
    this.#res = res;
    this.#signal = signal;
    this.#quiet = setInterval(() => {
      if (this.#isWithinEvent) return;
      this.#commit();
      res.write(': keep-alive\n\n');
    }, keepAliveMs);
  }

  /** @returns for an event of several pieces: resolves when it is written, and nothing else may be written before */
  event(data: object | JsonText, name?: string): Promise<void> | undefined {
    this.#commit();
    const line = name === undefined ? 'data: ' : `event: ${name}\ndata: `;
    if (Array.isArray(data)) {
      this.#flush();
      return this.#large([Buffer.from(line), ...data, END]);
    }
    // The next tick comes when nothing is left that can go on by itself, and before anything is read again.
    if (this.#joined === '') process.nextTick(() => this.#flush());
    this.#joined += `${line}${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
    if (this.#joined.length >= MOST_JOINED) this.#flush();
    return undefined;
  }

  async #large(pieces: readonly Uint8Array[]): Promise<void> {
    this.#isWithinEvent = true;
    await writeInPieces(this.#res, pieces, this.#signal);
    this.#isWithinEvent = false;
  }

  /** @param data of a last event, if there is one */
  end(data?: string): void {
    this.#commit();
    this.#res.end(data === undefined ? this.#joined : `${this.#joined}data: ${data}\n\n`);
    this.#joined = '';
  }

  /** Ends the comments. What was written before is still sent. */
  close(): void {
    clearInterval(this.#quiet);
  }

  #commit(): void {
    if (!this.#res.headersSent) this.#res.writeHead(200, HEADERS);
  }

  #flush(): void {
    if (this.#joined === '') return;
    this.#res.write(this.#joined);
    this.#joined = '';
    this.#quiet.refresh();
  }
}

/** Waits until the client has taken what was written: a slow client must not make memory grow. Ends early when it leaves. */
async function drained(res: ServerResponse, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await once(res, 'drain', { signal }).catch(() => undefined);
}

/**
 * Writes chunks as server-sent events. The first byte, a chunk or a comment, commits status 200; a failure before
 * it is thrown (and gets its own status), a failure after it is an event of the stream, and the stream then ends without its `end`
 * (src/core/README.md, "streams").
 */
export async function writeEventStream<Chunk extends object>(
  res: ServerResponse,
  chunks: AsyncIterable<Chunk>,
  { signal, keepAliveMs, formed, nameOf, end, onFailure }: EventStreamOptions<Chunk>,
): Promise<void> {
  const writer = new EventWriter(res, keepAliveMs, signal);
  try {
    for await (const chunk of chunks) {
      const writing = writer.event(formed(chunk), nameOf?.(chunk));
      if (writing !== undefined) await writing;
      if (res.writableNeedDrain) await drained(res, signal);
      if (signal.aborted) return;
    }
    writer.end(end);
  } catch (error) {
    if (!res.headersSent) throw error;
    const failure = toApiError(error);
    // A client that left is not a failure, unless the rest of its call could not be recorded.
    if (!signal.aborted || isOurFault(failure)) onFailure(failure);
    writer.end(JSON.stringify(failure.envelope()));
  } finally {
    writer.close();
  }
}

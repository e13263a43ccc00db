import { ApiError } from '../../domain/errors.ts';
import type { ChatRequest, ChunkChoice } from '../../generated/types.ts';
import type { LongTexts } from '../../net/long-texts.ts';
import type { Transport } from '../../net/transport.ts';
import { TransportError } from '../../net/transport-error.ts';
import type { UpstreamChunk } from '../../providers/wire/adapter.ts';
import { UpstreamError, unreadable } from '../../providers/wire/upstream-error.ts';
import type { Call } from '../call/call.ts';
import { type ExchangeLimits, exchange } from '../call/exchange.ts';
import type { Target } from '../models/reach.ts';
import { outboundChat } from './chat-exchange.ts';

/**
 * A stream that has begun to say something: until then an attempt may fail over, from then on it is this one or none. What was
 * read to know it comes first. (No generator: each costs a chunk more than what is done to it here.)
 */
export class OpenedStream implements AsyncIterableIterator<UpstreamChunk, void> {
  /** Of its chunks. */
  readonly longTexts: LongTexts;
  readonly #begun: UpstreamChunk[];
  readonly #rest: AsyncIterator<UpstreamChunk, void>;

  constructor(longTexts: LongTexts, begun: UpstreamChunk[], rest: AsyncIterator<UpstreamChunk, void>) {
    this.longTexts = longTexts;
    this.#begun = begun;
    this.#rest = rest;
  }

  next(): Promise<IteratorResult<UpstreamChunk, void>> {
    const value = this.#begun.shift();
    return value === undefined ? this.#rest.next() : Promise.resolve({ done: false, value });
  }

  /** Leaves the upstream's stream. */
  async return(): Promise<IteratorResult<UpstreamChunk, void>> {
    await this.#rest.return?.();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }
}

/** An upstream that says nothing for so many chunks, or characters of them, has begun too: they are held until then. */
const MOST_HELD = 64;
const MOST_HELD_CHARACTERS = 64 * 1024;

/** More than whose turn it is: a piece of any kind, or the end. */
const saysSomething = ({ delta, finish_reason }: ChunkChoice): boolean =>
  finish_reason !== null ||
  Object.entries(delta).some(([name, value]) => name !== 'role' && value !== '' && value !== null);

/** Asks a target for a stream, and reads it until it says something. @throws TransportError, UpstreamError, ApiError 503 */
export async function openStream(
  transport: Transport,
  target: Target,
  call: Call,
  request: ChatRequest,
  limits: ExchangeLimits,
): Promise<OpenedStream> {
  const response = await exchange(transport, target, outboundChat(call, request, target), 'streamed', limits);
  const { provider, credential } = target;
  const rest = provider.adapter.parseStream(response, credential.secret)[Symbol.asyncIterator]();
  const begun: UpstreamChunk[] = [];
  try {
    await readBeginning(rest, begun);
    return new OpenedStream(response.longTexts, begun, rest);
  } catch (error) {
    const failure = readFailure(error);
    const reported = begun.findLast(({ usage }) => usage !== undefined)?.usage;
    throw failure instanceof UpstreamError ? failure.withUsage(reported) : failure;
  }
}

/** @param begun gets the chunks that are read */
async function readBeginning(stream: AsyncIterator<UpstreamChunk, void>, begun: UpstreamChunk[]): Promise<void> {
  let characters = 0;
  for (;;) {
    const next = await stream.next();
    if (next.done === true) throw new Error('an adapter ended an empty stream without an error');
    begun.push(next.value);
    if (next.value.choices.some(saysSomething)) return;
    characters += JSON.stringify(next.value).length;
    if (begun.length >= MOST_HELD || characters >= MOST_HELD_CHARACTERS) return;
  }
}

/** What reading a stream threw: anything that is no failure of the network or the gateway was brought about by what it holds. */
export const readFailure = (error: unknown): unknown =>
  error instanceof UpstreamError || error instanceof TransportError || error instanceof ApiError
    ? error
    : unreadable(error);

import { type ApiError, overloaded } from '../domain/errors.ts';
import { TransportError } from './transport-error.ts';

/**
 * Takes room for an answer that needs so many bytes of memory in all, until its call has ended.
 * @throws ApiError 503 (`noRoom`) when the process, or the caller's share of it, has no memory left
 */
export type Room = (bytes: number) => void;

/** The answer of a call that we end because there is no room for what the provider sends: it has served the request. */
export const noRoom = (cause?: unknown): ApiError =>
  overloaded(new TransportError('too_large', 'there was no room for the answer', { sent: true, cause }));

/**
 * About as many bytes as one read of a socket gives. Any JSON up to here is parsed in 5 ms; of an event that is larger, and of
 * an answer that is larger and holds many values, or is much larger, the parsing is left to another thread.
 */
export const SMALL_BYTES = 64 * 1024;

/** Bytes of a stream in all, for each byte that a whole answer or one event of the stream may have. */
export const STREAM_FACTOR = 4;

/** Pieces of a body: a stream has one for each token. */
export const MAX_PIECES = 500_000;

/** Lines of a stream: a token is an event, and an event two or three lines. */
export const MAX_LINES = 1_000_000;

/** Lines of one event's data. */
export const MAX_DATA_LINES = 10_000;

/**
 * Bytes of an answer that may come before its body, interim answers included, or between two pieces of it. What one read of the
 * socket brings is looked at as a whole.
 */
export const MAX_UNHEARD_BYTES = 16 * 1024;

/**
 * The parser's own bound of a header, which is never reached: it goes on parsing beyond, and makes an error of each further
 * field, 140 ms of them in one read.
 */
export const PARSER_HEADER_BYTES = 256 * 1024;

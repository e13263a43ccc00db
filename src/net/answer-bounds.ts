/**
 * Takes room for an answer that needs so many bytes of memory in all, until its call is done with.
 * @throws ApiError 503 when the process, or the caller's share of it, has no memory left
 */
export type Room = (bytes: number) => void;

/**
 * About as many bytes as one read of a socket gives. JSON up to here is parsed where it arrives, which takes 5 ms at worst; more
 * of it is parsed on another thread.
 */
export const LARGE_BYTES = 64 * 1024;

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

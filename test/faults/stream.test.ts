// An upstream whose stream goes wrong (src/core/README.md, "broken streams").
import { afterAll, beforeAll, describe, it } from 'vitest';
import { checkFault, type FaultWorld, FIRST_COST, startFaultWorld } from '../support/fault-check.ts';
import {
  badAnswer,
  type FaultCase,
  inBand,
  lost,
  paid,
  refused,
  reported,
  SERVED,
  timedOut,
} from '../support/fault-outcome.ts';
import {
  beginning,
  cut,
  endless,
  errorBody,
  event,
  FAULT_TEXT,
  GOOD_EVENTS,
  GOOD_TEXT,
  head,
  LAST_PIECE,
  piece,
  stall,
} from '../support/fault-replies.ts';
import { chunk } from '../support/upstream.ts';

let world: FaultWorld;

beforeAll(async () => {
  world = await startFaultWorld({ IDLE_TIMEOUT_MS: '200', MAX_RESPONSE_BYTES: '100000' });
});

afterAll(() => world.close());

const [hal, lo, finish] = GOOD_EVENTS;
const stalled = timedOut('the answer stalled');
const tooLarge = paid(refused('the answer is too large'));
const eventTooLarge = paid(refused('an event of the stream is too large'));
const malformed = badAnswer('The provider sent a malformed chunk.');
const disguised = badAnswer('The provider reported an error inside a successful answer.');
const unpaid = reported(402, 'credential', 'The provider asks for payment on the credential in use.');
const cutOff = badAnswer("The provider's stream was cut off.");
const notHttp = refused('the answer is not well-formed HTTP');
const whole = (...events: (object | string)[]): string => `${beginning(...events)}${LAST_PIECE}`;

const HANGS_UP: readonly FaultCase[] = [
  { name: 'after the headers', fault: cut(beginning()), streamed: lost },
  { name: 'after a comment', fault: cut(`${beginning()}${piece(`: ${FAULT_TEXT}\n\n`)}`), streamed: lost },
  { name: 'within the first chunk', fault: cut(`${beginning()}${piece(event(hal).slice(0, 30))}`), streamed: lost },
  { name: 'after one chunk', fault: cut(beginning(hal)), streamed: inBand(lost, 'Hal') },
  { name: 'after several chunks', fault: cut(beginning(hal, lo)), streamed: inBand(lost, 'Hallo') },
  {
    name: 'within a later chunk',
    fault: cut(`${beginning(hal)}${piece('data: {"cho')}`),
    streamed: inBand(lost, 'Hal'),
  },
  { name: 'after the finish reason', fault: cut(beginning(hal, lo, finish)), streamed: inBand(lost, GOOD_TEXT) },
  {
    name: 'just before [DONE], when its usage is known',
    fault: cut(beginning(...GOOD_EVENTS)),
    streamed: inBand(lost, GOOD_TEXT, FIRST_COST),
  },
  {
    name: 'before all the bytes that it announced',
    fault: cut(`${head('200 OK', { 'content-type': 'text/event-stream', 'content-length': 10_000 })}${event(hal)}`),
    streamed: inBand(lost, 'Hal'),
  },
  { name: 'after [DONE]', fault: cut(beginning(...GOOD_EVENTS, '[DONE]')), streamed: SERVED },
];

const ENDS: readonly FaultCase[] = [
  {
    name: 'before it says anything',
    fault: cut(whole('[DONE]')),
    streamed: badAnswer('The provider sent an empty stream.'),
  },
  { name: 'without a finish reason', fault: cut(whole(hal, lo)), streamed: inBand(cutOff, 'Hallo') },
  {
    name: 'with [DONE] and without a finish reason',
    fault: cut(whole(hal, lo, '[DONE]')),
    streamed: inBand(cutOff, 'Hallo'),
  },
  { name: 'without [DONE], but for that whole', fault: cut(whole(...GOOD_EVENTS)), streamed: SERVED },
];

const STOPS: readonly FaultCase[] = [
  { name: 'after the headers', fault: stall(beginning()), streamed: stalled },
  { name: 'after one chunk', fault: stall(beginning(hal)), streamed: inBand(stalled, 'Hal') },
  { name: 'after several chunks', fault: stall(beginning(hal, lo)), streamed: inBand(stalled, 'Hallo') },
  {
    name: 'just before [DONE], when its usage is known',
    fault: stall(beginning(...GOOD_EVENTS)),
    streamed: inBand(stalled, GOOD_TEXT, FIRST_COST),
  },
  { name: 'after [DONE]', fault: stall(beginning(...GOOD_EVENTS, '[DONE]')), streamed: SERVED },
];

const SAYS: readonly FaultCase[] = [
  {
    name: 'a malformed first chunk',
    fault: stall(beginning(`{"choices":[{"delta":"${FAULT_TEXT}`)),
    streamed: malformed,
  },
  {
    name: 'a malformed later chunk',
    fault: stall(beginning(hal, '{"choices":[{')),
    streamed: inBand(malformed, 'Hal'),
  },
  { name: 'a chunk that is no object', fault: stall(beginning(hal, '[]')), streamed: inBand(malformed, 'Hal') },
  { name: 'an error first', fault: stall(beginning(errorBody())), streamed: disguised },
  { name: 'an error about money first', fault: stall(beginning(errorBody('insufficient_quota'))), streamed: unpaid },
  { name: 'an error later', fault: stall(beginning(hal, errorBody())), streamed: inBand(disguised, 'Hal') },
  {
    name: 'an event of type error first',
    fault: stall(`${beginning()}${piece(`event: error\n${event({ message: FAULT_TEXT })}`)}`),
    streamed: disguised,
  },
  {
    name: 'an event of type error later',
    fault: stall(`${beginning(hal)}${piece(`event: error\n${event({ message: FAULT_TEXT })}`)}`),
    streamed: inBand(disguised, 'Hal'),
  },
  { name: 'pieces of no size first', fault: stall(`${beginning()}${FAULT_TEXT}\r\n`), streamed: notHttp },
  {
    name: 'pieces of no size later',
    fault: stall(`${beginning(hal)}${FAULT_TEXT}\r\n`),
    streamed: inBand(notHttp, 'Hal'),
  },
];

const NEVER_ENDS: readonly FaultCase[] = [
  {
    name: 'with chunks',
    fault: endless(beginning(hal), piece(event(chunk({ reasoning: 'x'.repeat(500) })))),
    streamed: inBand(tooLarge, 'Hal', 'estimated'),
  },
  {
    name: 'with comments before the first chunk',
    fault: endless(beginning(), piece(`: ${FAULT_TEXT}\n`)),
    streamed: tooLarge,
  },
  {
    name: 'in one line, first',
    fault: endless(`${beginning()}${piece('data: ')}`, piece(FAULT_TEXT)),
    streamed: eventTooLarge,
  },
  {
    name: 'in one line, later',
    fault: endless(`${beginning(hal)}${piece('data: ')}`, piece(FAULT_TEXT)),
    streamed: inBand(eventTooLarge, 'Hal', 'estimated'),
  },
  {
    name: 'in one event of many lines',
    fault: endless(beginning(hal), piece(`data: ${FAULT_TEXT}\n`)),
    streamed: inBand(eventTooLarge, 'Hal', 'estimated'),
  },
];

const check = (fault: FaultCase) => checkFault(world, fault, 'streamed');

describe('a stream whose upstream hangs up', () => {
  it.each(HANGS_UP)('$name', check);
});

describe('a stream whose upstream ends it', () => {
  it.each(ENDS)('$name', check);
});

describe('a stream whose upstream stops', () => {
  it.each(STOPS)('$name', check);
});

describe('a stream whose upstream says', () => {
  it.each(SAYS)('$name', check);
});

describe('a stream whose upstream never ends', () => {
  it.each(NEVER_ENDS)('$name', check);
});

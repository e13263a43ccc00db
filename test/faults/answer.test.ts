// An upstream whose answer is none (src/core/README.md, "failover").
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkFault, type FaultWorld, FIRST_COST, startFaultWorld } from '../support/fault-check.ts';
import {
  badAnswer,
  charged,
  type FaultCase,
  free,
  lost,
  type Outcome,
  paid,
  refused,
  reported,
  timedOut,
} from '../support/fault-outcome.ts';
import {
  answer,
  beginning,
  begun,
  CREDENTIAL,
  cut,
  endless,
  errorBody,
  event,
  FAULT_TEXT,
  goodAnswer,
  head,
  JSON_HEAD,
  piece,
  stall,
} from '../support/fault-replies.ts';
import { KINDS } from '../support/fault-server.ts';
import { chunk, completion, startUpstream, type TestUpstream } from '../support/upstream.ts';

let world: FaultWorld;
let elsewhere: TestUpstream;

beforeAll(async () => {
  elsewhere = await startUpstream();
  world = await startFaultWorld({ IDLE_TIMEOUT_MS: '200', MAX_RESPONSE_BYTES: '100000' });
});

afterAll(async () => {
  await world.close();
  await elsewhere.close();
});

const both = (outcome: Outcome) => ({ whole: outcome, streamed: outcome });
const quoted = FAULT_TEXT.replace(CREDENTIAL, '[redacted]');
const malformed = badAnswer('The provider sent a malformed answer.');
const noStream = badAnswer('The provider did not answer with a stream.');
const disguised = badAnswer('The provider reported an error inside a successful answer.');
const unpaid = reported(402, 'credential', 'The provider asks for payment on the credential in use.');
const tooLarge = paid(refused('the answer is too large'));
const encoded = refused('the answer has a content encoding that was not asked for');

/** A hundred megabytes of nothing, in a hundred kilobytes. */
const BOMB = gzipSync(Buffer.alloc(100_000_000));

const redirect = (status: string): FaultCase => ({
  name: `redirects with ${status}`,
  fault: (exchange) => answer(status, FAULT_TEXT, { location: `${elsewhere.origin}/v1/chat/completions` })(exchange),
  keepsConnection: true,
  ...both(
    badAnswer(`The provider answered with the unexpected status ${status.slice(0, 3)}.`, Number(status.slice(0, 3))),
  ),
});

const STATUSES: readonly FaultCase[] = [
  {
    name: 'limits the rate, and says when to come again',
    fault: answer('429 Too Many Requests', errorBody(), { ...JSON_HEAD, 'retry-after': 3600 }),
    keepsConnection: true,
    isQuoted: true,
    ...both(reported(429, 'rate_limited', `The provider limits the rate of calls: ${quoted}`)),
  },
  {
    name: 'fails with 500 and says why',
    fault: answer('500 Internal Server Error', errorBody()),
    keepsConnection: true,
    isQuoted: true,
    ...both(reported(500, 'upstream_error', `The provider failed: ${quoted}`)),
  },
  {
    name: 'fails with 500 and a page',
    fault: answer('500 Internal Server Error', `<html>${FAULT_TEXT}</html>`, { 'content-type': 'text/html' }),
    keepsConnection: true,
    ...both(reported(500, 'upstream_error', 'The provider failed: status 500')),
  },
  {
    name: 'refuses the credential and repeats it',
    fault: answer('401 Unauthorized', errorBody()),
    keepsConnection: true,
    ...both(reported(401, 'credential', "The provider refused the gateway's credential.")),
  },
  redirect('301 Moved Permanently'),
  redirect('302 Found'),
  redirect('307 Temporary Redirect'),
  redirect('308 Permanent Redirect'),
];

const BODIES: readonly FaultCase[] = [
  {
    name: 'answers nothing with 200',
    fault: answer('200 OK', ''),
    keepsConnection: true,
    whole: malformed,
    streamed: noStream,
  },
  {
    name: 'answers 204',
    fault: ({ write }) => write(head('204 No Content')),
    keepsConnection: true,
    whole: { ...malformed, entry: { error_type: 'bad_response' } },
    streamed: badAnswer('The provider did not answer with a stream.', 204),
  },
  {
    name: 'answers 200 with an error',
    fault: answer('200 OK', errorBody()),
    keepsConnection: true,
    ...both(disguised),
  },
  {
    name: 'answers 200 with an error about money',
    fault: answer('200 OK', errorBody('insufficient_quota')),
    keepsConnection: true,
    ...both(unpaid),
  },
  {
    name: 'answers with a page',
    fault: answer('200 OK', `<html>${FAULT_TEXT}</html>`, { 'content-type': 'text/html' }),
    keepsConnection: true,
    whole: malformed,
    streamed: noStream,
  },
  {
    name: 'answers with a completion where a stream was asked for',
    fault: answer('200 OK', completion(FAULT_TEXT)),
    keepsConnection: true,
    streamed: charged(noStream, FIRST_COST),
  },
  {
    name: 'answers with a stream where a completion was asked for',
    fault: ({ write }) => write(goodAnswer('streamed')),
    keepsConnection: true,
    whole: malformed,
  },
  {
    name: 'answers with a stream without end where a completion was asked for',
    fault: endless(beginning(), piece(event(chunk({ content: FAULT_TEXT })))),
    whole: tooLarge,
  },
  {
    name: 'answers JSON that ends too soon',
    fault: answer('200 OK', `{"choices":[{"message":{"content":"${FAULT_TEXT}"`),
    keepsConnection: true,
    whole: malformed,
    streamed: noStream,
  },
  {
    name: 'answers with no choice',
    fault: answer('200 OK', { ...completion(''), choices: [], words: FAULT_TEXT }),
    keepsConnection: true,
    whole: charged(badAnswer('The provider sent an empty answer.'), FIRST_COST),
  },
];

const LENGTHS: readonly FaultCase[] = [
  {
    name: 'hangs up before all that it announced',
    fault: cut(begun()),
    ...both(lost),
  },
  {
    name: 'stops after the headers',
    fault: stall(begun()),
    ...both(timedOut('the answer stalled')),
  },
  {
    name: 'stops after the headers of a failure',
    fault: stall(`${head('500 Internal Server Error', { ...JSON_HEAD, 'content-length': 1000 })}${FAULT_TEXT}`),
    ...both(free(timedOut('the answer stalled'))),
  },
  {
    name: 'sends pieces of no size',
    fault: stall(`${head('200 OK', { ...JSON_HEAD, 'transfer-encoding': 'chunked' })}${FAULT_TEXT}\r\n`),
    ...both(refused('the answer is not well-formed HTTP')),
  },
  {
    name: 'sends more than the limit',
    fault: answer('200 OK', completion('x'.repeat(200_000))),
    ...both(tooLarge),
  },
  {
    name: 'announces more than the limit',
    fault: stall(`${head('200 OK', { ...JSON_HEAD, 'content-length': 10_000_000_000 })}{`),
    ...both(timedOut('the answer stalled')),
  },
  {
    name: 'sends without end',
    fault: endless(head('200 OK', { ...JSON_HEAD, 'transfer-encoding': 'chunked' }), piece(FAULT_TEXT.repeat(100))),
    ...both(tooLarge),
  },
  {
    name: 'fails without end',
    fault: endless(
      head('500 Internal Server Error', { 'transfer-encoding': 'chunked' }),
      piece(FAULT_TEXT.repeat(100)),
    ),
    ...both(free(tooLarge)),
  },
  {
    name: 'sends a compressed bomb, though identity was asked for',
    fault: async ({ kind, write }) => {
      const type = kind === 'streamed' ? 'text/event-stream' : 'application/json';
      await write(head('200 OK', { 'content-type': type, 'content-encoding': 'gzip', 'content-length': BOMB.length }));
      await write(BOMB);
    },
    ...both(encoded),
  },
  {
    name: 'fails with a compressed bomb',
    fault: async ({ write }) => {
      await write(head('500 Internal Server Error', { 'content-encoding': 'gzip', 'content-length': BOMB.length }));
      await write(BOMB);
    },
    ...both(encoded),
  },
];

describe.each(KINDS)('a call whose answer comes %s, to an upstream that', (kind) => {
  const known = [...STATUSES, ...BODIES, ...LENGTHS].filter((fault) => fault[kind] !== undefined);

  it.each(known)('$name', (fault) => checkFault(world, fault, kind));
});

it('no redirect was followed', () => {
  expect(elsewhere.received).toEqual([]);
});

// An upstream that fails before there is an answer (src/core/README.md, "failover").
import { afterAll, beforeAll, describe, it } from 'vitest';
import { checkFault, type FaultWorld, startFaultWorld } from '../support/fault-check.ts';
import { type FaultCase, lost, type Outcome, refused, SERVED, timedOut } from '../support/fault-outcome.ts';
import { cut, endless, FAULT_TEXT, goodAnswer, head, stall } from '../support/fault-replies.ts';
import { KINDS } from '../support/fault-server.ts';

let world: FaultWorld;

beforeAll(async () => {
  world = await startFaultWorld({ FIRST_BYTE_TIMEOUT_MS: '200' });
});

afterAll(() => world.close());

const both = (outcome: Outcome) => ({ whole: outcome, streamed: outcome });
const notHttp = both(refused('the answer is not well-formed HTTP'));

const FAULTS: readonly FaultCase[] = [
  { name: 'refuses connections', fault: 'down', ...both(lost) },
  {
    name: 'accepts the connection and never answers',
    fault: () => {},
    ...both(timedOut('the first byte took too long')),
  },
  { name: 'hangs up instead of answering', fault: ({ cut: hangUp }) => hangUp(), ...both(lost) },
  {
    name: 'resets the connection within the headers',
    fault: async ({ write, reset }) => {
      await write(`HTTP/1.1 200 OK\r\nx-words: ${FAULT_TEXT}`);
      reset();
    },
    ...both(lost),
  },
  { name: 'hangs up within the headers', fault: cut(`HTTP/1.1 200 OK\r\nx-words: ${FAULT_TEXT}`), ...both(lost) },
  {
    name: 'stops within the headers',
    fault: stall(`HTTP/1.1 200 OK\r\nx-words: ${FAULT_TEXT}`),
    ...both(timedOut('the first byte took too long')),
  },
  { name: 'speaks another protocol', fault: cut(`SSH-2.0-${FAULT_TEXT}\r\n\r\n`), ...notHttp },
  { name: 'sends a status that is none', fault: stall(`HTTP/1.1 2000 ${FAULT_TEXT}\r\n\r\n`), ...notHttp },
  { name: 'sends a header that is none', fault: stall(`HTTP/1.1 200 OK\r\n${FAULT_TEXT}\r\n\r\n`), ...notHttp },
  {
    name: 'states two lengths',
    fault: stall(`HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}`),
    ...notHttp,
  },
  {
    name: 'states a length and sends pieces',
    fault: stall(`HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`),
    ...notHttp,
  },
  {
    name: 'sends headers without end',
    fault: endless('HTTP/1.1 200 OK\r\n', `x-words: ${FAULT_TEXT.repeat(20)}\r\n`),
    ...notHttp,
  },
  {
    name: 'sends one header without end',
    fault: endless('HTTP/1.1 200 OK\r\nx-words: ', FAULT_TEXT.repeat(20)),
    ...notHttp,
  },
  {
    name: 'sends informational answers first',
    fault: ({ kind, write }) =>
      write(`${head('102 Processing')}${head('103 Early Hints', { link: '<x>' })}${goodAnswer(kind)}`),
    ...both(SERVED),
  },
  {
    name: 'tells to continue, which nobody asked for',
    fault: ({ kind, write }) => write(`${head('100 Continue')}${goodAnswer(kind)}`),
    ...both(lost),
  },
  {
    name: 'switches protocols',
    fault: stall(`${head('101 Switching Protocols', { connection: 'upgrade', upgrade: 'websocket' })}${FAULT_TEXT}`),
    ...both(lost),
  },
  {
    name: 'answers before it is asked a second time',
    fault: ({ kind, write }) => write(`${goodAnswer(kind)}${head('200 OK', { 'content-length': 2 })}{}`),
    ...both(SERVED),
  },
];

describe.each(KINDS)('a call whose answer comes %s, to an upstream that', (kind) => {
  it.each(FAULTS)('$name', (fault) => checkFault(world, fault, kind));
});

// An upstream that takes its time (src/core/README.md, "quiet streams").
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { errorOf, eventsOf, hello, streamedText } from '../support/chat.ts';
import {
  ask,
  checkFault,
  expectAnswered,
  expectGoodCall,
  type FaultWorld,
  SECOND_TEXT,
  startFaultWorld,
} from '../support/fault-check.ts';
import { type FaultCase, final, inBand, type Outcome, timedOut } from '../support/fault-outcome.ts';
import {
  answer,
  beginning,
  begun,
  CREDENTIAL,
  event,
  FAULT_TEXT,
  GOOD_EVENTS,
  GOOD_TEXT,
  good,
  head,
  LAST_PIECE,
  piece,
} from '../support/fault-replies.ts';
import { type Fault, KINDS, type Kind } from '../support/fault-server.ts';
import { callRows } from '../support/rows.ts';
import { failure } from '../support/upstream.ts';

let world: FaultWorld;

afterEach(() => world.close());

const both = (outcome: Outcome) => ({ whole: outcome, streamed: outcome });

/** Says a little, again and again, so that nothing but the whole takes too long. */
const trickle =
  (bytes: string | ((kind: Kind) => string), again: string): Fault =>
  async (exchange) => {
    await exchange.write(typeof bytes === 'string' ? bytes : bytes(exchange.kind));
    while (!exchange.isClosed) {
      await exchange.write(again);
      await sleep(20);
    }
  };

const tooLong = final(timedOut('the whole answer took too long'));
const [hal] = GOOD_EVENTS;

const ENDLESS: readonly FaultCase[] = [
  { name: 'never answers', fault: () => {}, ...both(tooLong) },
  { name: 'sends informational answers for ever', fault: trickle('', head('102 Processing')), ...both(tooLong) },
  { name: 'sends its headers byte by byte', fault: trickle('HTTP/1.1 200 OK\r\nx-words: ', 'x'), ...both(tooLong) },
  { name: 'sends the answer byte by byte', fault: trickle(begun(), ' '), whole: tooLong },
  { name: 'sends comments for ever', fault: trickle(beginning(), piece(`: ${FAULT_TEXT}\n\n`)), streamed: tooLong },
  {
    name: 'sends comments for ever after a chunk',
    fault: trickle(beginning(hal), piece(`: ${FAULT_TEXT}\n\n`)),
    streamed: inBand(tooLong, 'Hal', 'estimated'),
  },
];

describe.each(KINDS)('the total time ends a call whose answer comes %s, of an upstream that', (kind) => {
  it.each(ENDLESS.filter((fault) => fault[kind] !== undefined))('$name', async (fault) => {
    world = await startFaultWorld({ TOTAL_TIMEOUT_MS: '700' });
    await checkFault(world, fault, kind);
  });
});

describe('the connecting time ends a call', () => {
  it('whose upstream accepts a connection and never shakes hands', async () => {
    world = await startFaultWorld({ CONNECT_TIMEOUT_MS: '200' }, { isTls: true });
    const message = 'The provider took too long: connecting took too long.';

    for (const kind of KINDS) {
      const [alone, second] = await Promise.all([ask(world, 'zeta/shared', kind), ask(world, 'shared', kind)]);

      expect([alone.status, errorOf(alone)]).toMatchObject([504, { code: 'upstream_timeout', message }]);
      expectAnswered(world, second, kind, SECOND_TEXT, [
        { provider: 'zeta', error_type: 'timeout', succeeded: false },
        { provider: 'yota', error_type: 'none', succeeded: true },
      ]);
    }
    expect(world.faulty.exchanges).toEqual([]);
  });
});

/** Begins a stream and waits until its status has been sent, which is when its first byte has. */
async function committed(model: string): Promise<Response> {
  const { origin, firstRun } = world.gateway;
  const response = await fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${firstRun.gatewayKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(hello({ model, stream: true })),
  });
  expect(response.status).toBe(200);
  return response;
}

describe('a stream whose first token is slow', () => {
  it('shows comments, then the answer', async () => {
    world = await startFaultWorld({ KEEP_ALIVE_COMMENT_MS: '20' });
    const { promise: go, resolve } = Promise.withResolvers<void>();
    world.faulty.begin(async (exchange) => {
      await exchange.write(`${beginning()}${piece(`: ${FAULT_TEXT}\n\n`)}`);
      await go;
      await exchange.write(GOOD_EVENTS.map((each) => piece(event(each))).join(''));
      await exchange.write(`${piece(event('[DONE]'))}${LAST_PIECE}`);
    });

    const response = await committed('shared');
    resolve();

    const text = await response.text();
    const { comments, chunks, done } = eventsOf(text);
    expect(text.startsWith(': keep-alive\n\n')).toBe(true);
    expect([new Set(comments), streamedText(chunks), done]).toEqual([new Set([': keep-alive']), GOOD_TEXT, true]);
  });

  const fails: readonly (readonly [string, Fault, string])[] = [
    ['is cut', ({ cut: hangUp }) => hangUp(), 'connection'],
    [
      'turns into an error',
      (exchange) => exchange.write(beginning({ error: { message: FAULT_TEXT } })),
      'bad_response',
    ],
    ['turns into a status', answer('503 Service Unavailable', 'x'), 'upstream_error'],
    ['never comes', () => {}, 'timeout'],
  ];

  it.each(fails)('and then %s fails over silently, though its status was sent', async (_, fault, errorType) => {
    world = await startFaultWorld({ KEEP_ALIVE_COMMENT_MS: '20', FIRST_BYTE_TIMEOUT_MS: '200' });
    const { promise: go, resolve } = Promise.withResolvers<void>();
    world.faulty.begin(async (exchange) => {
      await go;
      await fault(exchange);
    });

    const response = await committed('shared');
    resolve();

    const { chunks, done } = eventsOf(await response.text());
    expect([streamedText(chunks), done]).toEqual([SECOND_TEXT, true]);
    expect(chunks.at(-1)?.metadata?.routing).toMatchObject([
      { provider: 'zeta', error_type: errorType, succeeded: false },
      { provider: 'yota', error_type: 'none', succeeded: true },
    ]);
    await Promise.all(world.faulty.exchanges.map(({ cut: hangUp }) => hangUp()));
    await expectGoodCall(world, 'streamed');
  });

  it('and whose providers all fail then ends with an error event', async () => {
    world = await startFaultWorld({ KEEP_ALIVE_COMMENT_MS: '20' });
    const { promise: go, resolve } = Promise.withResolvers<void>();
    world.faulty.begin(async ({ cut: hangUp }) => {
      await go;
      await hangUp();
    });
    world.healthy.begin(failure(500, FAULT_TEXT));

    const response = await committed('shared');
    resolve();

    const text = await response.text();
    const { chunks, done, error } = eventsOf(text);
    expect([chunks, done, error?.code]).toEqual([[], false, 'upstream_error']);
    expect(text).not.toContain(CREDENTIAL);
    expect(callRows(world.gateway)).toMatchObject([{ state: 'settled', statusCode: 502, cost: 0n }]);
    await expectGoodCall(world, 'streamed');
  });
});

describe.each(KINDS)('a call whose answer comes %s', (kind) => {
  it('waits for an upstream that is slow, but not too slow', async () => {
    world = await startFaultWorld();
    world.faulty.begin(async (exchange) => {
      await sleep(200);
      await good(exchange);
    });

    const slow = await ask(world, 'shared', kind);

    expectAnswered(world, slow, kind, GOOD_TEXT, [{ provider: 'zeta', error_type: 'none', succeeded: true }]);
  });
});

// That the documented outcome of a fault comes about.
import { expect } from 'vitest';
import { type ChatOptions, chat, completionOf, errorOf, eventsOf, hello, streamedText } from './chat.ts';
import type { FaultCase, Outcome } from './fault-outcome.ts';
import { CREDENTIAL, FAULT_TEXT, GOOD_TEXT, good } from './fault-replies.ts';
import { type FaultServer, type Kind, startFaultServer } from './fault-server.ts';
import { startGateway, type TestGateway } from './gateway.ts';
import type { Answer } from './request.ts';
import { callRow } from './rows.ts';
import {
  chunk,
  completion,
  events,
  json,
  type Reply,
  startUpstream,
  type TestUpstream,
  USAGE_CHUNK,
  upstreamEnv,
} from './upstream.ts';

/** A gateway between a server that fails and one that does not. */
export interface FaultWorld {
  readonly gateway: TestGateway;
  readonly faulty: FaultServer;
  readonly healthy: TestUpstream;
  close(): Promise<void>;
}

export const SECOND_TEXT = 'From the second';
const fromSecond: Reply = (response, received) => {
  const isStream = received.text.includes('"stream":true');
  const stream = events(chunk({ content: SECOND_TEXT }), chunk({}, 'stop'), USAGE_CHUNK);
  return (isStream ? stream : json(completion(SECOND_TEXT)))(response, received);
};

/** With `isTls`, the gateway takes the server that fails for one that speaks TLS. */
export async function startFaultWorld(
  env: Readonly<Record<string, string>> = {},
  { isTls = false } = {},
): Promise<FaultWorld> {
  const faulty = await startFaultServer();
  const healthy = await startUpstream();
  healthy.begin(fromSecond);
  const gateway = await startGateway({
    // Named against the order of their prices, so that only the price can explain who comes first.
    ...upstreamEnv('zeta', isTls ? faulty.origin.replace('http:', 'https:') : faulty.origin, 'shared', 'shared=1/1'),
    ...upstreamEnv('yota', healthy.origin, 'shared', 'shared=2/2'),
    ...env,
  });
  return {
    gateway,
    faulty,
    healthy,
    async close() {
      await gateway.close();
      await faulty.close();
      await healthy.close();
    },
  };
}

/** The exact prices: 10 tokens in, 5 out, at 1 and at 2 dollars a million. */
export const FIRST_COST = 15_000_000n;
const SECOND_COST = 30_000_000n;
/** Of the prompt at the first provider's price, as the gateway estimates it. */
const ESTIMATED_COST = 8_000_000n;

const NO_CACHE: ChatOptions = { headers: [['x-no-cache', 'true']] };

export const ask = ({ gateway }: FaultWorld, model: string, kind: Kind): Promise<Answer> =>
  chat(gateway, hello({ model, stream: kind === 'streamed' }), NO_CACHE);

const CODES: Readonly<Record<number, string>> = {
  429: 'upstream_rate_limited',
  502: 'upstream_error',
  503: 'upstream_overloaded',
  504: 'upstream_timeout',
};

const failure = (status: number, message: string) => ({
  message,
  type: status === 429 ? 'rate_limit_error' : 'api_error',
  param: null,
  code: CODES[status] ?? '',
});

const attemptsOf = (world: FaultWorld, answer: Answer): unknown =>
  JSON.parse(callRow(world.gateway, answer).attemptsJson ?? '[]');

/** A whole answer, or all of a stream, from the provider that is expected to give it. */
export function expectAnswered(
  world: FaultWorld,
  answer: Answer,
  kind: Kind,
  text: string,
  attempts: readonly object[],
  failedCost: bigint | 'estimated' = 0n,
): void {
  const last = attempts.at(-1);
  if (kind === 'whole') {
    const { choices, metadata } = completionOf(answer);
    expect([choices[0]?.message.content, metadata.routing]).toMatchObject([text, attempts]);
  } else {
    const { chunks, done, error } = eventsOf(answer.text);
    const routing = chunks.at(-1)?.metadata?.routing;
    expect([streamedText(chunks), done, error, routing]).toMatchObject([text, true, undefined, attempts]);
  }
  const row = callRow(world.gateway, answer);
  const cost = last === undefined || !('provider' in last) || last.provider === 'zeta' ? FIRST_COST : SECOND_COST;
  const whole = cost + (failedCost === 'estimated' ? ESTIMATED_COST : failedCost);
  expect([row.state, row.statusCode, row.errorCode, row.cost]).toEqual(['settled', 200, null, whole]);
  expect(attemptsOf(world, answer)).toMatchObject(attempts);
}

function expectRow(world: FaultWorld, answer: Answer, status: number, cost: bigint | 'estimated'): void {
  const row = callRow(world.gateway, answer);
  const { code } = failure(status, '');
  expect([row.state, row.statusCode, row.errorCode]).toEqual(['settled', status, code]);
  if (cost === 'estimated') expect([row.cost > 0n, row.usageEstimated]).toEqual([true, 1]);
  else expect(row.cost).toBe(cost);
}

/** The call is pinned to the provider that fails. */
async function checkAlone(world: FaultWorld, kind: Kind, outcome: Outcome): Promise<Answer> {
  const answer = await ask(world, 'zeta/shared', kind);
  if (outcome.is === 'served') {
    expectAnswered(world, answer, kind, GOOD_TEXT, [{ provider: 'zeta', error_type: 'none', succeeded: true }]);
  } else if (outcome.is === 'told in band') {
    const { chunks, done, error } = eventsOf(answer.text);
    expect([answer.status, streamedText(chunks), done, error]).toEqual([
      200,
      outcome.said,
      false,
      failure(outcome.status, outcome.message),
    ]);
    expectRow(world, answer, outcome.status, outcome.cost);
  } else {
    expect([answer.status, errorOf(answer), answer.headers['x-should-retry']]).toEqual([
      outcome.status,
      failure(outcome.status, outcome.message),
      outcome.status === 429 || outcome.status === 503 ? undefined : 'false',
    ]);
    expectRow(world, answer, outcome.status, outcome.cost);
    expect(attemptsOf(world, answer)).toMatchObject([{ provider: 'zeta', ...outcome.entry, succeeded: false }]);
  }
  return answer;
}

/** Another provider could serve the call. */
async function checkBesideAnother(world: FaultWorld, kind: Kind, outcome: Outcome): Promise<Answer> {
  world.healthy.begin(fromSecond);
  const answer = await ask(world, 'shared', kind);
  const isRetried = outcome.is === 'failed attempt' && outcome.isRetried;
  expect(world.healthy.received.length).toBe(isRetried ? 1 : 0);
  if (isRetried) {
    const attempts = [
      { provider: 'zeta', ...outcome.entry, succeeded: false },
      { provider: 'yota', error_type: 'none', status_code: 200, succeeded: true },
    ];
    expectAnswered(world, answer, kind, SECOND_TEXT, attempts, outcome.cost);
  }
  return answer;
}

function expectNoLeak(world: FaultWorld, answer: Answer, isQuoted: boolean): void {
  const { attemptsJson } = callRow(world.gateway, answer);
  const told = [answer.text, JSON.stringify(answer.headers), attemptsJson].join('\n');
  expect(told).not.toContain(CREDENTIAL);
  if (!isQuoted) expect(told).not.toContain(FAULT_TEXT.slice(0, 20));
}

/** Whatever the fault left open, the gateway has given up. */
const allClosed = ({ faulty }: FaultWorld): Promise<unknown> =>
  Promise.all(faulty.exchanges.map(({ closed }) => closed));

/** Both ways to meet the fault, what it may not leave behind, and a good call after it. */
export async function checkFault(world: FaultWorld, { fault, ...fate }: FaultCase, kind: Kind): Promise<void> {
  const outcome = fate[kind];
  if (outcome === undefined) throw new Error('this kind of call does not know the fault');
  world.faulty.begin(fault === 'down' ? () => undefined : fault);
  if (fault === 'down') await world.faulty.down();
  try {
    const answers = await Promise.all([checkAlone(world, kind, outcome), checkBesideAnother(world, kind, outcome)]);
    for (const answer of answers) expectNoLeak(world, answer, fate.isQuoted === true);
    if (fate.keepsConnection !== true && outcome.is !== 'served') await allClosed(world);
  } finally {
    if (fault === 'down') await world.faulty.up();
    // Three failures in a row would make the provider rest, and the next check fail for what went wrong in this one.
    await askForGood(world, kind);
  }
  await expectGoodCall(world, kind);
}

function askForGood(world: FaultWorld, kind: Kind): Promise<Answer> {
  world.faulty.begin(good);
  return ask(world, 'zeta/shared', kind);
}

/** The provider that failed serves again. */
export async function expectGoodCall(world: FaultWorld, kind: Kind): Promise<void> {
  const answer = await askForGood(world, kind);
  expectAnswered(world, answer, kind, GOOD_TEXT, [{ provider: 'zeta', error_type: 'none', succeeded: true }]);
}

// 64 callers at once, on a key, or on many keys under one budget, with room for exactly ten of their calls. PARALLEL_ROUNDS says
// how often in a row (CI: 100).
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { changeBudget } from '../../../src/admin/tenants/budgets.ts';
import { createProject, deleteProject } from '../../../src/admin/tenants/projects.ts';
import { chat, completionOf, errorOf, eventsOf, hello } from '../../support/chat.ts';
import { addKey, startGateway, type TestGateway, type TestKey } from '../../support/gateway.ts';
import { addOwnModels, FLAT } from '../../support/own-models.ts';
import type { Answer } from '../../support/request.ts';
import { budgetSums, callRows, keySums } from '../../support/rows.ts';
import {
  chunk,
  completion,
  events,
  json,
  startUpstream,
  type TestUpstream,
  USAGE_CHUNK,
} from '../../support/upstream.ts';

const CALLERS = 64;
const ROOM = 10;
const CALL = 10_000_000_000n;
const ROUNDS = Number(process.env.PARALLEL_ROUNDS ?? '3');

let upstream: TestUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({
    ALLOW_PRIVATE_UPSTREAMS: new URL(upstream.origin).host,
    RATE_LIMIT_CHAT_PER_MINUTE: '1000000',
  });
  const { allowPrivateUpstreams } = gateway.config;
  addOwnModels(gateway.db, gateway.firstRun, upstream.origin, allowPrivateUpstreams, { flat: FLAT });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

/** Answers a moment later, so that calls overlap, in the kind that is asked for. */
const answering =
  (stream: boolean) =>
  async (...call: Parameters<ReturnType<typeof json>>) => {
    await sleep(Math.random() * 4);
    const reply = stream
      ? events(chunk({ role: 'assistant', content: 'Hello' }), chunk({}, 'stop'), USAGE_CHUNK)
      : json(completion('Hello'));
    await reply(...call);
  };

/** How a call ended: served to its end, or refused as documented; anything else as it is. */
function ending(answer: Answer, stream: boolean): string {
  if (answer.status !== 200) {
    const { code } = errorOf(answer);
    return code === 'budget_reserved' && answer.headers['retry-after'] !== '1'
      ? 'no retry-after'
      : `${answer.status} ${code}`;
  }
  if (!stream) return completionOf(answer).usage.cost === 0.01 ? 'served' : answer.text;
  const { chunks, done } = eventsOf(answer.text);
  return done && chunks.at(-1)?.usage?.cost === 0.01 ? 'served' : answer.text;
}

const REFUSED = new Set(['401 usage_limit_reached', '429 budget_reserved']);

const RECURRING = { periodUsageLimit: '0.1', periodUsageDurationValue: 1, periodUsageDurationUnit: 'day' } as const;

/** Lets the callers call with the keys in turn: as many as there is room for are served, the others are refused. */
async function expectTenServed(stream: boolean, round: number, keys: readonly TestKey[]): Promise<void> {
  upstream.begin(answering(stream));
  const answers = await Promise.all(
    Array.from({ length: CALLERS }, (_, i) => {
      const messages = [{ role: 'user', content: `Round ${round}, caller ${i}` }];
      return chat(gateway, hello({ model: 'own/flat', stream, messages }), keys[i % keys.length]);
    }),
  );
  const endings = answers.map((answer) => ending(answer, stream));
  expect(endings.filter((end) => !REFUSED.has(end))).toEqual(Array(ROOM).fill('served'));
  expect(upstream.received).toHaveLength(ROOM);
}

describe.each([
  ['whole answers', false],
  ['streams', true],
])('of 64 callers for %s', (_, stream) => {
  it.each([
    ['an all-time', { usageLimit: '0.1' }],
    ['a recurring', RECURRING],
  ])(
    `on a key whose room is ten calls, by %s limit, ten are served, ${ROUNDS} times in a row`,
    { timeout: 30_000 + ROUNDS * 3000 },
    async (__, limits) => {
      const used = new Set<string>();
      for (let round = 0; round < ROUNDS; round += 1) {
        const key = addKey(gateway, limits);
        used.add(key.id);
        await expectTenServed(stream, round, [key]);
        expect(keySums(gateway, key.id)).toMatchObject({
          usage: 10n * CALL,
          reserved: 0n,
          currentPeriodReserved: 0n,
        });
      }
      // A call that came when all was spent, not just held back, was refused at the door and has no row.
      const rows = callRows(gateway).filter(({ keyId: id }) => used.has(id));
      expect(rows.filter(({ state }) => state !== 'settled' && state !== 'released')).toEqual([]);
      const settled = rows.filter(({ state }) => state === 'settled');
      for (const ofKey of Map.groupBy(settled, ({ keyId: id }) => id).values()) {
        expect(ofKey.map(({ cost }) => cost)).toEqual(Array(ROOM).fill(CALL));
      }
    },
  );

  it.each([
    ['an all-time', { usageLimit: '0.1' }],
    ['a recurring', RECURRING],
  ])(
    `on eight keys under one budget whose room is ten calls, by %s limit, ten are served, ${ROUNDS} times in a row`,
    { timeout: 30_000 + ROUNDS * 3000 },
    async (__, limits) => {
      const actor = { kind: 'cli', organizationId: gateway.firstRun.organizationId } as const;
      for (let round = 0; round < ROUNDS; round += 1) {
        const { id: projectId } = createProject(gateway.db, actor, { name: 'Budgeted' }, Date.now()).project;
        const owner = { kind: 'project', project: projectId } as const;
        changeBudget(gateway.db, actor, owner, limits, Date.now());
        const keys = Array.from({ length: 8 }, () => addKey(gateway, { projectId }));

        await expectTenServed(stream, round, keys);

        expect(budgetSums(gateway, projectId)).toMatchObject({
          usage: 10n * CALL,
          reserved: 0n,
          currentPeriodReserved: 0n,
        });
        deleteProject(gateway.db, actor, projectId, Date.now());
      }
    },
  );
});

// Calls of all kinds at once, of random cost, some of which fail and some of whose clients leave: the ledger is right at every moment.
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { answering } from '../../crash/answering.ts';
import { findFaults, findLedgerFaults } from '../../crash/invariants.ts';
import { Load } from '../../crash/load.ts';
import { Random } from '../../crash/random.ts';
import { addKey, startGateway } from '../../support/gateway.ts';
import { addOwnModels } from '../../support/own-models.ts';
import { callRows } from '../../support/rows.ts';
import { startUpstream } from '../../support/upstream.ts';

const CALLS = Number(process.env.RANDOM_CALLS ?? '600');
const SEED = Number(process.env.PROPERTY_SEED ?? Date.now() % 2 ** 31);

const day = { periodUsageDurationValue: 1, periodUsageDurationUnit: 'day' } as const;
const METERED = { maxOutput: 400, pricing: { prompt: '0.000001', completion: '0.00001', request: '0.001' } };

it(`sums equal the rows and no key is a pico-dollar over either limit, at every moment (seed ${SEED})`, async () => {
  const random = new Random(SEED);
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const gateway = await startGateway({
    ALLOW_PRIVATE_UPSTREAMS: new URL(upstream.origin).host,
    RATE_LIMIT_CHAT_PER_MINUTE: 'off',
  });
  onTestFinished(() => gateway.close());
  const { allowPrivateUpstreams } = gateway.config;
  addOwnModels(gateway.db, gateway.firstRun, upstream.origin, allowPrivateUpstreams, { metered: METERED });
  const both = { usageLimit: '0.25', periodUsageLimit: '0.2', ...day };
  const keys = [
    addKey(gateway, { usageLimit: '0.3' }),
    addKey(gateway, { periodUsageLimit: '0.3', ...day }),
    addKey(gateway, both),
  ] as const;
  const keyIds = keys.map(({ id }) => id);
  const dispatched = new Set<string>();
  const load = new Load(random, 1, [...keys], CALLS);
  upstream.begin(answering(random, dispatched, load.sent));

  let running = true;
  const looks = (async () => {
    const faults: string[] = [];
    for (; running; await sleep(10)) faults.push(...findLedgerFaults(gateway.db, keyIds));
    return faults;
  })();
  await load.run(gateway.origin, 24);
  // Those whose clients left are settled a moment later.
  while (callRows(gateway).some(({ state }) => state === 'open')) await sleep(10);
  running = false;

  expect([await looks, findFaults(gateway.db, { keyIds, acknowledged: load.acknowledged, dispatched })[0]]).toEqual([
    [],
    [],
  ]);
  // Something of everything has happened.
  const endings = new Set(callRows(gateway).map(({ state, statusCode: status }) => `${state} ${status}`));
  expect([...endings]).toEqual(expect.arrayContaining(['settled 200', 'settled 502', 'settled 499']));
  expect([load.statuses.has(401) || load.statuses.has(429), load.acknowledged.length > 50]).toEqual([true, true]);
});

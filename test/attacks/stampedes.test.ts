// What many ask for at once is made once: lists of models, and the metrics.

import { rmSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCatalog } from '../../src/catalog/catalog.ts';
import { createDocuments } from '../../src/core/authorize.ts';
import { createAuthenticate } from '../../src/core/caller.ts';
import { createListModels } from '../../src/core/list-models.ts';
import type { Reach } from '../../src/core/reach.ts';
import { createFindReachable } from '../../src/core/reachable.ts';
import { systemClock } from '../../src/domain/time.ts';
import { createPdp, type Pdp } from '../../src/policy/pdp.ts';
import { databasePath } from '../../src/store/db/data-dir.ts';
import { loadSecrets } from '../../src/store/secrets/secrets.ts';
import { createStore } from '../../src/store/store.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { createTelemetry } from '../../src/telemetry/telemetry.ts';
import { serve } from '../process/running.ts';
import { bearer } from '../support/chat.ts';
import { addKey, addRule, newDataDir, removeRule, startGateway, type TestGateway } from '../support/gateway.ts';
import { GUARD_URL } from '../support/network-guard-env.ts';
import { head, openRaw } from '../support/raw.ts';
import { send } from '../support/request.ts';

const ALL = { includeDeactivated: false, excludeDeprecated: false, noTraining: false, mapped: false };

describe('the list of models', () => {
  /** The lists of the catalogue, and what was built of them. */
  function catalogueLists(ran: () => void = () => {}) {
    const clock = { now: () => Date.parse('2026-11-21T12:00:00Z') };
    const built: string[] = [];
    const unused = () => Promise.reject(new Error('not asked for'));
    const listModels = createListModels({
      catalog: createCatalog({ sandbox: true, upstreams: [], clock }),
      findReach: unused,
      findReachable: unused,
      clock,
      moderationModel: 'sandbox-moderation',
      telemetry: {
        ...createTelemetry({ level: 'silent', accessLog: 'off' }),
        ran(what) {
          built.push(what);
          ran();
        },
      },
    });
    return { listModels, built };
  }

  it('is built once for 1,200 who ask before there is one, and sent as the same bytes', async () => {
    const { listModels, built } = catalogueLists();

    const lists = await Promise.all(Array.from({ length: 1200 }, () => listModels(undefined, ALL)));

    expect(built).toEqual(['building a list of models']);
    expect(new Set(lists.map(({ list }) => list.bytes)).size).toBe(1);
  });

  it('is built one in a turn of the event loop, of those that are asked for at once', async () => {
    let turn = 0;
    const count = (): void => {
      turn += 1;
      counting = setImmediate(count);
    };
    let counting = setImmediate(count);
    const turns: number[] = [];
    const { listModels } = catalogueLists(() => void turns.push(turn));
    const both = [true, false];
    const queries = both.flatMap((mapped) =>
      both.flatMap((noTraining) =>
        both.map((excludeDeprecated) => ({ ...ALL, mapped, noTraining, excludeDeprecated })),
      ),
    );

    await Promise.all(queries.map((query) => listModels(undefined, query)));
    clearImmediate(counting);

    expect(turns).toHaveLength(queries.length);
    expect(new Set(turns).size).toBe(queries.length);
  });

  it('is built once for each query', async () => {
    const { listModels, built } = catalogueLists();

    for (let i = 0; i < 3; i += 1) {
      await listModels(undefined, ALL);
      await listModels(undefined, { ...ALL, mapped: true });
    }

    expect(built).toHaveLength(2);
  });

  it('is sent to 1,200 who ask on one connection, in little time and memory, from the first moment on', async () => {
    const dataDir = newDataDir();
    const server = await serve({
      DATA_DIR: dataDir,
      NODE_OPTIONS: `--import=${GUARD_URL} --max-old-space-size=160`,
      LOG_LEVEL: 'silent',
    });
    const { socket, ended } = await openRaw(server.origin, head('GET /v1/models').repeat(1199));
    socket.write(head('GET /v1/models', 'Connection: close'));

    const answers = (await ended).split('HTTP/1.1 ').slice(1);
    server.child.kill('SIGTERM');
    await server.ended;
    rmSync(dataDir, { recursive: true });

    expect(answers.map((answer) => answer.slice(0, 6))).toEqual(Array(1200).fill('200 OK'));
    expect(new Set(answers.map((answer) => answer.slice(answer.indexOf('{')))).size).toBe(1);
  });
});

/** Every mapping of the catalogue can be called. */
const EVERYTHING: Reach = {
  id: 1,
  custom: [],
  seen: (mapping) => mapping,
  aliases: new Map(),
  isSandboxFree: () => false,
  isCustomProvider: () => false,
  provider: () => undefined,
  has: () => true,
  targets: () => [],
};

describe('the list of models of a key', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway({ RATE_LIMIT_MODELS_PER_MINUTE: 'off' });
  });
  afterAll(() => gateway.close());

  const list = async (token = gateway.firstRun.gatewayKey, address = '192.0.2.1', query = '') => {
    const headers = [bearer(token), ['x-forwarded-for', address] as const];
    const { status, text } = await send(gateway.origin, { path: `/v1/models${query}`, headers });
    expect(status).toBe(200);
    return text;
  };

  it('is not judged again for every address that a caller makes up, where no rule looks at addresses', async () => {
    const store = createStore({ path: databasePath(gateway.dataDir), clock: systemClock });
    const pdp = createPdp();
    let evaluations = 0;
    const counted: Pdp = {
      ...pdp,
      permitted(...of) {
        evaluations += 1;
        return pdp.permitted(...of);
      },
    };
    const { peppers } = loadSecrets(gateway.dataDir, { create: false });
    const authenticate = createAuthenticate({ store, clock: systemClock, peppers });
    const findReachable = createFindReachable({
      catalog: createCatalog({ sandbox: true, upstreams: [], clock: systemClock }),
      findReach: async () => EVERYTHING,
      documents: createDocuments(store),
      pdp: () => counted,
    });
    /** Evaluations for 100 addresses, and how many answers they gave. */
    const asked = async (): Promise<[evaluations: number, answers: number]> => {
      evaluations = 0;
      const answers = new Set<string>();
      for (let i = 0; i < 100; i += 1) {
        const principal = await authenticate(gateway.firstRun.gatewayKey);
        answers.add((await findReachable({ principal, clientIp: `198.51.100.${i}` })).id);
      }
      return [evaluations, answers.size];
    };

    const [once, answers] = await asked();
    const { id } = addRule(gateway, 'key', { ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['198.51.100.0/25'] } });
    await nextTurn();
    const judged = await asked();
    removeRule(gateway, 'key', id);
    store.close();
    pdp.close();

    expect(once).toBeGreaterThan(0);
    expect([answers, judged]).toEqual([1, [100 * once, 1]]);
  });

  it('is each its own: by rules, by address where a rule looks at it, by spend limit and by query', async () => {
    const other = addKey(gateway, { description: 'Other' });
    const capped = addKey(gateway, { description: 'Capped', usageLimit: '5' });
    const everything = await list();
    addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-paid'] } });
    const denied = await list();
    addRule(gateway, 'key', { ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['198.51.100.0/24'] } });

    const ids = (text: string): string[] => JSON.parse(text).data.map(({ id }: { id: string }) => id);
    expect(ids(everything)).toContain('sandbox-paid');
    expect(ids(denied)).toEqual(ids(everything).filter((id) => id !== 'sandbox-paid'));
    expect([ids(await list()), ids(await list(undefined, '198.51.100.7'))]).toEqual([ids(denied), []]);
    expect([await list(other.token), await list(other.token)]).toEqual([everything, everything]);
    expect(ids(await list(capped.token))).toEqual(ids(everything));
    expect(ids(await list(undefined, undefined, '?include_restricted=true'))).toContain('sandbox-paid');
    expect(ids(await list(undefined, undefined, '?mapped=true'))).toContain('sandbox/sandbox-free');
  });
});

it('the metrics are gathered once for all who ask at the same time, and again for the next', async () => {
  const { exposition, requestEnded } = createMetrics();

  const [one, other] = [exposition(), exposition()];
  expect(one).toBe(other);
  await one;
  requestEnded('/v1/models', 200, undefined);

  expect(await exposition()).toContain('route="/v1/models"');
});

// POST /v1/chat/completions: what happens when the first provider fails (src/core/README.md, "failover").
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../../src/domain/time.ts';
import { chat, completionOf, errorOf, eventsOf, hello, streamedText } from '../../support/chat.ts';
import { addRule, removeRule, startGateway, type TestGateway } from '../../support/gateway.ts';
import { callRow } from '../../support/rows.ts';
import {
  chunk,
  completion,
  cutAfter,
  events,
  failure,
  hangUp,
  json,
  type Reply,
  startUpstream,
  type TestUpstream,
  USAGE_CHUNK,
  upstreamEnv,
} from '../../support/upstream.ts';

let first: TestUpstream;
let second: TestUpstream;
let others: TestUpstream;
let gateway: TestGateway;
const clock = new ManualClock('2026-11-21T12:00:00Z');

beforeAll(async () => {
  [first, second, others] = [await startUpstream(), await startUpstream(), await startUpstream()];
  gateway = await startGateway(
    {
      // Named against the order of their prices, so that only the price can explain who comes first.
      ...upstreamEnv('zeta', first.origin, 'shared', 'shared=1/1'),
      ...upstreamEnv('yota', second.origin, 'shared', 'shared=2/2'),
      ...upstreamEnv('beta', others.origin, 'shared', 'shared=3/3'),
      ...upstreamEnv('alpha', others.origin, 'shared', 'shared=3/3'),
    },
    { clock },
  );
});

beforeEach(() => {
  clock.advance(30_000); // a provider that rests for the failures of the test before is tried again
  first.begin(failure(500, 'Broken.'));
  second.begin(json(completion('From the second')));
  others.begin(json(completion('From the others')));
});

afterAll(async () => {
  await gateway.close();
  await Promise.all([first, second, others].map((upstream) => upstream.close()));
});

const shared = (more: Readonly<Record<string, unknown>> = {}) => hello({ model: 'shared', ...more });
const stream = events(chunk({ content: 'Hi' }), chunk({}, 'stop'), USAGE_CHUNK);

describe('before the first byte', () => {
  const retried: readonly [string, Reply, object][] = [
    ['a status 500', failure(500, 'x'), { error_type: 'upstream_error', status_code: 500 }],
    ['a status 503', failure(503, 'x'), { error_type: 'upstream_error', status_code: 503 }],
    ['a status 404', failure(404, 'x'), { error_type: 'upstream_error', status_code: 404 }],
    ['a status 408', failure(408, 'x'), { error_type: 'timeout', status_code: 408 }],
    ['a status 409', failure(409, 'x'), { error_type: 'upstream_error', status_code: 409 }],
    ['a status 429', failure(429, 'x'), { error_type: 'rate_limited', status_code: 429 }],
    ['a status 401', failure(401, 'x'), { error_type: 'credential', status_code: 401 }],
    ['a status 402', failure(402, 'x'), { error_type: 'credential', status_code: 402 }],
    ['a status 403', failure(403, 'x'), { error_type: 'credential', status_code: 403 }],
    ['a lost connection', hangUp, { error_type: 'connection' }],
    ['a malformed answer', json('{'), { error_type: 'bad_response', status_code: 200 }],
    ['an empty answer', json({ choices: [] }), { error_type: 'bad_response', status_code: 200 }],
  ];

  it.each(retried)('%s is followed by the next provider, and stands in metadata.routing', async (_, reply, attempt) => {
    first.begin(reply);

    const answer = await chat(gateway, shared());

    const { metadata, choices, usage } = completionOf(answer);
    expect(choices[0]?.message.content).toBe('From the second');
    const row = callRow(gateway, answer);
    const attempts = [
      {
        provider: 'zeta',
        model: 'shared',
        region: 'global',
        ...attempt,
        succeeded: false,
        apiKeyHash: expect.stringMatching(/^[0-9a-f]{16}$/),
        credentialSource: 'service',
        logId: row.id,
      },
      {
        provider: 'yota',
        model: 'shared',
        region: 'global',
        status_code: 200,
        error_type: 'none',
        succeeded: true,
        apiKeyHash: expect.stringMatching(/^[0-9a-f]{16}$/),
        credentialSource: 'service',
        logId: row.id,
      },
    ];
    expect(metadata.routing).toEqual(attempts);
    expect(metadata.used_provider).toBe('yota');
    expect(usage.cost).toBe(0.00003);
    const [failed, served] = attempts;
    expect([row.providerId, row.cost, JSON.parse(row.attemptsJson ?? '')]).toEqual([
      'yota',
      30_000_000n,
      [{ ...failed, cause: expect.any(String) }, served],
    ]);
  });

  it.each([
    ['is empty', events()],
    ['reports usage and says nothing', events(USAGE_CHUNK)],
    ['is cut before it says anything', cutAfter(USAGE_CHUNK)],
    [
      'gives a role and then an error',
      events(chunk({ role: 'assistant', content: '' }), { error: { message: 'Quota.' } }),
    ],
    ['gives a role and is cut', cutAfter(chunk({ role: 'assistant', content: '' }))],
  ])('of a stream that %s it goes on silently', async (_, reply) => {
    first.begin(reply);
    second.begin(stream);

    const { chunks, done } = eventsOf((await chat(gateway, shared({ stream: true }))).text);

    expect([streamedText(chunks), done]).toEqual(['Hi', true]);
    expect(chunks.at(-1)?.metadata?.routing).toMatchObject([
      { provider: 'zeta', succeeded: false },
      { provider: 'yota', succeeded: true },
    ]);
  });

  it('equal prices are tried in the order of their ids, and no more than three', async () => {
    second.begin(failure(500, 'x'));
    others.begin(failure(502, 'The last one.'));

    const answer = await chat(gateway, shared());

    expect([answer.status, errorOf(answer).message]).toEqual([502, 'The provider failed: The last one.']);
    expect(answer.headers['x-should-retry']).toBe('false');
    expect(JSON.parse(callRow(gateway, answer).attemptsJson ?? '')).toMatchObject([
      { provider: 'zeta' },
      { provider: 'yota' },
      { provider: 'alpha' },
    ]);
  });
});

describe('a provider that says how long it wants to rest', () => {
  const busy =
    (retryAfter: string): Reply =>
    (response) => {
      response.writeHead(429, { 'content-type': 'application/json', 'retry-after': retryAfter });
      response.end('{}');
    };
  const tried = async (): Promise<string[]> =>
    completionOf(await chat(gateway, shared())).metadata.routing.map(({ provider }) => provider);

  it.each([
    ['7', 7000],
    ['86400', 300_000],
  ])('with retry-after %s is avoided for %i ms, and then is the first again', async (retryAfter, restMs) => {
    first.begin(busy(retryAfter));
    expect(await tried()).toEqual(['zeta', 'yota']);
    first.begin(json(completion('From the first')));

    clock.advance(restMs - 1);
    expect(await tried()).toEqual(['yota']);
    clock.advance(1);
    expect(await tried()).toEqual(['zeta']);
  });
});

describe('no other provider is tried', () => {
  const expectOne = (): void =>
    expect([first, second, others].map(({ received }) => received.length)).toEqual([1, 0, 0]);

  it("when the fault is the caller's own", async () => {
    first.begin(failure(400, 'No.'));

    expect((await chat(gateway, shared())).status).toBe(400);
    expectOne();
  });

  it('when the request pins one', async () => {
    const answer = await chat(gateway, shared({ model: 'zeta/shared' }));

    expect([answer.status, errorOf(answer).message]).toEqual([502, 'The provider failed: Broken.']);
    expectOne();
  });

  it('when the caller says x-no-fallback', async () => {
    const answer = await chat(gateway, shared(), { headers: [['x-no-fallback', 'true']] });

    expect(answer.status).toBe(502);
    expectOne();
  });

  it('after the first byte: the failure is an error event', async () => {
    first.begin(cutAfter(chunk({ content: 'Hal' })));

    const { chunks, done, error } = eventsOf((await chat(gateway, shared({ stream: true }))).text);

    expect([streamedText(chunks), done, error?.code]).toEqual(['Hal', false, 'upstream_error']);
    expectOne();
  });
});

describe('only what the policy permitted', () => {
  let rules: string[] = [];

  afterEach(() => {
    for (const id of rules) removeRule(gateway, 'key', id);
    rules = [];
  });

  const deny = (...providers: string[]): void => {
    const rule = { ruleType: 'deny_providers', ruleValue: { providers }, description: 'Under review' } as const;
    rules.push(addRule(gateway, 'key', rule).id);
  };

  it('is ever called, on every attempt', async () => {
    deny('yota', 'alpha');

    const { metadata } = completionOf(await chat(gateway, shared()));

    expect(metadata.routing.map(({ provider }) => provider)).toEqual(['zeta', 'beta']);
    expect(second.received).toEqual([]);
  });

  it('is called on a later attempt by the rules as they are then', async () => {
    first.begin((response, received) => {
      deny('yota');
      return failure(500, 'x')(response, received);
    });

    const answer = await chat(gateway, shared());

    expect([answer.status, errorOf(answer).code, errorOf(answer).message]).toEqual([
      403,
      'permission_denied',
      `Access denied: provider blocked: yota is denied by rule ${rules[0]} (Under review).`,
    ]);
    expect(second.received).toEqual([]);
    const row = callRow(gateway, answer);
    expect([row.state, row.statusCode, row.errorCode]).toEqual(['settled', 403, 'permission_denied']);
    expect(JSON.parse(row.attemptsJson ?? '')).toMatchObject([{ provider: 'zeta', status_code: 500 }]);
  });

  it('is called on a later attempt only if the rules can be had then: else it is a 503, recorded as such', async () => {
    first.begin((response, received) => {
      deny('nobody');
      gateway.db.connection
        .prepare('UPDATE subject_rules SET compiledJson = ? WHERE subjectId = ?')
        .run('{"enforce":', gateway.keyId);
      return failure(500, 'x')(response, received);
    });

    const answer = await chat(gateway, shared());

    expect([answer.status, errorOf(answer).code]).toEqual([503, 'policy_unavailable']);
    expect(second.received).toEqual([]);
    const row = callRow(gateway, answer);
    expect([row.state, row.statusCode, row.errorCode]).toEqual(['settled', 503, 'policy_unavailable']);
    expect(JSON.parse(row.attemptsJson ?? '')).toMatchObject([{ provider: 'zeta', status_code: 500 }]);
  });
});

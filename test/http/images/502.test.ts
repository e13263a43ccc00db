// POST /v1/images/generations: providers that fail.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../../src/domain/time.ts';
import { errorOf } from '../../support/chat.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { draw, fox, imagesOf, pictured } from '../../support/images.ts';
import { callRow } from '../../support/rows.ts';
import {
  failure,
  hangUp,
  json,
  type Reply,
  startUpstream,
  type TestUpstream,
  upstreamEnv,
} from '../../support/upstream.ts';

const clock = new ManualClock('2026-11-21T12:00:00Z');
let upstream: TestUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
  const models = 'sandbox-image-plus,sandbox-image-max';
  const prices = 'sandbox-image-plus=0/0,sandbox-image-max=1/1';
  gateway = await startGateway(upstreamEnv('acme', upstream.origin, models, prices), { clock });
});

beforeEach(() => clock.advance(30_000)); // a provider that rests for the failures of the test before is tried again

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const faults: readonly [string, Reply, object][] = [
  ['a status 500', failure(500, 'x'), { error_type: 'upstream_error', status_code: 500 }],
  ['a status 429', failure(429, 'x'), { error_type: 'rate_limited', status_code: 429 }],
  ['a status 401', failure(401, 'x'), { error_type: 'credential', status_code: 401 }],
  ['a lost connection', hangUp, { error_type: 'connection' }],
  ['a malformed answer', json('{'), { error_type: 'bad_response', status_code: 200 }],
  ['no picture', json({ created: 1, data: [] }), { error_type: 'bad_response', status_code: 200 }],
  ['a picture that is none', pictured({ data: [{}] }), { error_type: 'bad_response', status_code: 200 }],
];

describe('a first provider that fails', () => {
  it.each(faults)('with %s is followed by the next one', async (_, reply, attempt) => {
    upstream.begin(reply);

    const answer = await draw(gateway, fox());

    const { metadata, usage } = imagesOf(answer);
    expect(metadata.routing).toMatchObject([
      { provider: 'acme', succeeded: false, ...attempt },
      { provider: 'sandbox', succeeded: true, status_code: 200, error_type: 'none' },
    ]);
    expect([metadata.used_provider, usage.cost, callRow(gateway, answer).cost]).toEqual(['sandbox', 0, 0n]);
  });

  it('is the only one with x-no-fallback', async () => {
    upstream.begin(failure(500, 'x'));

    const answer = await draw(gateway, fox(), { headers: [['x-no-fallback', 'true']] });

    expect([answer.status, upstream.received.length]).toEqual([502, 1]);
  });
});

describe('when every provider has failed', () => {
  it('the answer is that of the last one, final, and the call is booked at no cost', async () => {
    upstream.begin(failure(500, 'Broken.'));

    const answer = await draw(gateway, fox({ model: 'sandbox-image-max', prompt: 'fail:503' }));

    expect([answer.status, answer.headers['x-should-retry'], errorOf(answer)]).toEqual([
      502,
      'false',
      { message: 'The provider failed: Broken.', type: 'api_error', param: null, code: 'upstream_error' },
    ]);
    const row = callRow(gateway, answer);
    expect([row.state, row.statusCode, row.errorCode, row.cost, row.providerId]).toEqual([
      'settled',
      502,
      'upstream_error',
      0n,
      null,
    ]);
    expect(JSON.parse(row.attemptsJson ?? '')).toMatchObject([
      { provider: 'sandbox', status_code: 503 },
      { provider: 'acme', status_code: 500 },
    ]);
  });
});

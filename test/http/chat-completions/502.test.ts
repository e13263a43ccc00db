// POST /v1/chat/completions: no provider could answer.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { chat, errorOf, faulty, hello } from '../../support/chat.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
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

let upstream: TestUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({
    ...upstreamEnv('acme', upstream.origin, 'large', 'large=2/8'),
    // A port on which nobody listens: the system refuses the connection.
    ...upstreamEnv('gone', 'http://127.0.0.1:1', 'absent', 'absent=2/8'),
    MAX_RESPONSE_BYTES: '10000',
  });
});

beforeEach(() => upstream.begin(hangUp));

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const failed = (message: string) => ({ error: { message, type: 'api_error', param: null, code: 'upstream_error' } });

describe('the sandbox failing on request', () => {
  it.each([
    [
      '500',
      'The provider failed: The sandbox fails with status 500, as asked.',
      'upstream_error',
      500,
      'provider_failed',
    ],
    [
      '409',
      'The provider reported a conflict: The sandbox fails with status 409, as asked.',
      'upstream_error',
      409,
      'provider_failed',
    ],
    ['404', 'The provider does not know the model.', 'upstream_error', 404, 'model_unknown'],
    ['401', "The provider refused the gateway's credential.", 'credential', 401, 'credential_refused'],
    ['402', 'The provider asks for payment on the credential in use.', 'credential', 402, 'payment_required'],
    ['403', "The provider refused the gateway's credential.", 'credential', 403, 'credential_refused'],
    ['malformed', 'The provider sent a malformed answer.', 'bad_response', 200, 'unusable_answer'],
    ['empty', 'The provider sent an empty answer.', 'bad_response', 200, 'unusable_answer'],
    ['error', 'The provider reported an error inside a successful answer.', 'bad_response', 200, 'unusable_answer'],
    [
      'cut',
      'The connection to the provider failed: it could not be made or was cut.',
      'connection',
      undefined,
      'connection_reset',
    ],
  ])('with %s is a final 502 with the reason', async (fault, message, errorType, status, cause) => {
    const answer = await chat(gateway, faulty(fault));

    expect([answer.status, answer.json, answer.headers['x-should-retry']]).toEqual([502, failed(message), 'false']);
    const row = callRow(gateway, answer);
    expect([row.state, row.statusCode, row.errorCode, row.cost]).toEqual(['settled', 502, 'upstream_error', 0n]);
    expect(JSON.parse(row.attemptsJson ?? '')).toEqual([
      {
        provider: 'sandbox',
        model: 'sandbox-faulty',
        region: 'global',
        ...(status === undefined ? {} : { status_code: status }),
        error_type: errorType,
        succeeded: false,
        credentialSource: 'service',
        logId: row.id,
        cause,
      },
    ]);
  });
});

describe('an upstream', () => {
  it('whose answer to a credential names it is never quoted', async () => {
    upstream.begin(failure(401, 'Incorrect API key provided: secret-of-acme'));

    const answer = await chat(gateway, hello({ model: 'large' }));

    expect([answer.status, answer.json]).toEqual([502, failed("The provider refused the gateway's credential.")]);
    expect(answer.text).not.toContain('secret');
  });

  it('that cannot be reached is a lost connection', async () => {
    const answer = await chat(gateway, hello({ model: 'absent' }));

    expect([answer.status, answer.json]).toEqual([
      502,
      failed('The connection to the provider failed: it could not be made or was cut.'),
    ]);
  });

  const answers: readonly [string, Reply, string][] = [
    ['hangs up', hangUp, 'The connection to the provider failed: it could not be made or was cut.'],
    ['answers HTML', json('<html>'), 'The provider sent a malformed answer.'],
    ['answers a list', json([]), 'The provider sent a malformed answer.'],
    [
      'answers too much',
      json({ choices: [], x: 'x'.repeat(20_000) }),
      'The answer of the provider was refused: the answer is too large.',
    ],
    [
      'redirects',
      (response) => {
        response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end();
      },
      'The provider answered with the unexpected status 302.',
    ],
    [
      'answers compressed though that was not asked for',
      (response) => {
        response.writeHead(200, { 'content-encoding': 'gzip' }).end('x');
      },
      'The answer of the provider was refused: the answer has a content encoding that was not asked for.',
    ],
  ];

  it.each(answers)('that %s is a 502 that tells so', async (_, reply, message) => {
    upstream.begin(reply);

    const answer = await chat(gateway, hello({ model: 'large' }));

    expect([answer.status, answer.json]).toEqual([502, failed(message)]);
  });

  it('that answers a stream request without a stream is a 502', async () => {
    upstream.begin(json({ choices: [] }));

    const answer = await chat(gateway, hello({ model: 'large', stream: true }));

    expect([answer.status, errorOf(answer).message]).toEqual([502, 'The provider did not answer with a stream.']);
  });
});

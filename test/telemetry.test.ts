// What is logged: each request once, what happened and never what was said.
import { readFileSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { errorText } from '../src/telemetry/telemetry.ts';
import { signedIn } from './http/oauth/application.ts';
import { chat, faulty, hello } from './support/chat.ts';
import { addRule, newDataDir, startGateway, type TestGateway } from './support/gateway.ts';
import { masked } from './support/masked.ts';
import { send } from './support/request.ts';
import { callRows } from './support/rows.ts';
import { chunk, cutAfter, startUpstream, type TestUpstream, upstreamEnv } from './support/upstream.ts';

let folder: string;
let file: string;
let upstream: TestUpstream;
let gateway: TestGateway;

beforeEach(async () => {
  folder = newDataDir();
  file = path.join(folder, 'logs', 'access.log');
  upstream = await startUpstream();
  gateway = await startGateway({
    ...upstreamEnv('acme', upstream.origin, 'large', 'large=2/8'),
    ACCESS_LOG: file,
    LOG_LEVEL: 'error',
  });
});

afterEach(async () => {
  await gateway.close();
  await upstream.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Everything that was logged: the log is whole once the gateway has closed. */
async function logged(): Promise<Record<string, unknown>[]> {
  await gateway.container.close();
  return readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line): Record<string, unknown> => JSON.parse(line));
}

describe('the access log', () => {
  it('has one line for each request, with its ids and how it ended', async () => {
    const { id } = addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-free'] } });
    await chat(gateway, hello(), { headers: [['x-forwarded-for', '192.0.2.7']] });
    await chat(gateway, hello({ stream: true }));
    await chat(gateway, hello({ model: 'sandbox-free' }));
    await chat(gateway, faulty('500'));
    await chat(gateway, hello(), { token: 'nonsense' });
    await send(gateway.origin, { path: '/nothing?with=secrets' });
    const [call] = callRows(gateway);

    const lines = await logged();

    expect(id).toMatch(/^rule_/);
    const served = { keyId: '<key>', callId: '<call>', decisionId: '<dec>' };
    const sandbox = { provider: 'sandbox', model: 'sandbox-paid', outcome: 'permit', cost: '0' };
    const common = { level: 30, msg: 'request', requestId: '<req>', aborted: false, clientIp: null };
    const completions = { ...common, method: 'POST', path: '/v1/chat/completions' };
    expect(lines.map(({ time, durationMs, ...line }) => masked(line))).toEqual([
      { ...completions, ...served, ...sandbox, status: 200, clientIp: '192.0.2.7' },
      { ...completions, ...served, ...sandbox, status: 200 },
      {
        ...completions,
        ...served,
        ...{ outcome: 'deny', reason: 'deny_models', cost: '0' },
        ...{ status: 403, code: 'permission_denied' },
      },
      { ...completions, ...served, outcome: 'permit', cost: '0', status: 502, code: 'upstream_error' },
      { ...completions, status: 401, code: 'invalid_api_key' },
      { ...common, method: 'GET', path: '/nothing', status: 404, code: 'not_found' },
    ]);
    expect([lines[0]?.requestId, lines[0]?.callId, lines[0]?.decisionId]).toEqual([
      call?.requestId,
      call?.id,
      call?.decisionId,
    ]);
  });

  it('names the member whose session signed a request', async () => {
    await signedIn(gateway).get('/oauth/interaction/account');
    await send(gateway.origin, { path: '/oauth/interaction/account' });

    const lines = await logged();

    expect(lines.map(({ path: where, status, memberId }) => [where, status, memberId])).toEqual([
      ['/oauth/interaction/account', 200, gateway.memberId],
      ['/oauth/interaction/account', 303, undefined],
    ]);
  });

  it('holds no secret and nothing of what was said', async () => {
    await chat(gateway, hello({ messages: [{ role: 'user', content: 'A confidential prompt' }] }));
    await chat(gateway, faulty('500'), { headers: [['x-api-key', 'another-secret']] });
    await send(gateway.origin, { path: '/v1/models?token=in-the-query' });

    await logged();

    const text = readFileSync(file, 'utf8');
    for (const secret of [
      gateway.firstRun.gatewayKey,
      'pcl_',
      'Bearer',
      'confidential',
      'another-secret',
      'in-the-query',
      'fail:500',
    ]) {
      expect(text).not.toContain(secret);
    }
  });

  it('names what ended a stream midway, though its status was 200', async () => {
    upstream.begin(cutAfter(chunk({ content: 'Hi' })));
    await chat(gateway, hello({ model: 'large', stream: true }));

    expect(await logged()).toMatchObject([{ status: 200, aborted: false, code: 'upstream_error' }]);
  });

  it('says of a client that it left', async () => {
    const { promise: arrived, resolve } = Promise.withResolvers<void>();
    const { promise: left, resolve: leave } = Promise.withResolvers<void>();
    upstream.begin((response) => {
      response.on('close', leave);
      resolve();
    });
    const outgoing = request(`${gateway.origin}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.firstRun.gatewayKey}`, 'content-type': 'application/json' },
    });
    outgoing.on('error', () => {});
    outgoing.end(JSON.stringify(hello({ model: 'large' })));
    await arrived;
    outgoing.destroy();
    await left;

    expect(await logged()).toMatchObject([
      { path: '/v1/chat/completions', status: 499, aborted: true, keyId: gateway.keyId },
    ]);
  });
});

describe('the text of an error', () => {
  it('is its chain of causes, bounded', () => {
    const endless = new Error('e'.repeat(10_000));
    endless.cause = endless;

    expect(errorText(new Error('outer', { cause: new TypeError('inner', { cause: 'text' }) }))).toMatch(
      /^Error: outer\n[\s\S]* <- TypeError: inner\n[\s\S]* <- text$/,
    );
    expect(errorText(endless).length).toBeLessThan(30_000);
    expect(errorText('x'.repeat(5000))).toHaveLength(2000);
  });
});

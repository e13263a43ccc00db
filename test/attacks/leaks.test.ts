// Threat: what a caller wrote, or the secret that a request carried, turns up in the log or in an answer to someone else.
// Defence: the log holds our own words alone; an upstream's words are scrubbed with the secret that was used, also inside a 200; a success is passed on without it.
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { serve } from '../process/running.ts';
import { bearer, chat, completionOf, eventsOf, hello, JSON_TYPE, streamedText } from '../support/chat.ts';
import { newDataDir, startGateway, type TestGateway } from '../support/gateway.ts';
import { send } from '../support/request.ts';
import {
  chunk,
  completion,
  type Reply,
  startUpstream,
  type TestUpstream,
  upstreamEnv,
  writeEvents,
} from '../support/upstream.ts';

const PROMPT = 'The-merger-is-on-Friday';

let upstream: TestUpstream;

beforeAll(async () => {
  upstream = await startUpstream();
});

afterAll(() => upstream.close());

const answering =
  (body: unknown, status = 200): Reply =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };

const streaming =
  (...events: (object | string)[]): Reply =>
  (response) => {
    writeEvents(response, ...events);
    response.end();
  };

const echo = { error: { message: `You said: ${PROMPT}`, type: 'server_error', code: null } };

describe('the log', () => {
  it('never holds a prompt at info, whatever the upstream echoes and however the call fails', async () => {
    const dataDir = newDataDir();
    const { origin, key, child, ended } = await serve({
      DATA_DIR: dataDir,
      LOG_LEVEL: 'info',
      ACCESS_LOG: 'stdout',
      IDLE_TIMEOUT_MS: '300',
      ...upstreamEnv('acme', upstream.origin, 'large'),
    });
    const ask = async (reply: Reply, body: object | string): Promise<number> => {
      upstream.begin(reply);
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      const headers = [bearer(key ?? ''), JSON_TYPE];
      return (await send(origin, { method: 'POST', path: '/v1/chat/completions', headers, body: text })).status;
    };
    const asked = hello({ model: 'large', messages: [{ role: 'user', content: PROMPT }] });
    const streamed = { ...asked, stream: true };
    const statuses: number[] = [];
    for (const status of [400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 498, 500, 503, 529, 302]) {
      statuses.push(await ask(answering(echo, status), asked), await ask(answering(echo, status), streamed));
    }
    for (const body of [echo, `{"broken": "${PROMPT}`, completion(PROMPT, { choices: [{ error: echo.error }] }), '']) {
      statuses.push(await ask(answering(body), asked), await ask(answering(body), streamed));
    }
    for (const events of [
      [echo],
      [`{"broken": "${PROMPT}`],
      [chunk({ content: PROMPT }), echo],
      [chunk({ content: PROMPT })],
    ]) {
      statuses.push(await ask(streaming(...events), streamed));
    }
    statuses.push(await ask((response) => writeEvents(response, chunk({ content: PROMPT })), streamed));
    for (const body of [`{"model":"large","messages":"${PROMPT}`, { ...asked, [PROMPT]: 1 }, { ...asked, n: PROMPT }]) {
      statuses.push(await ask(answering(completion('Hi')), body));
    }

    child.kill('SIGTERM');
    const { stdout, stderr } = await ended;
    rmSync(dataDir, { recursive: true, force: true });

    expect(statuses).toContain(502);
    expect(stdout.match(/attempt failed/g)?.length).toBeGreaterThan(25);
    expect(`${stdout}${stderr}`).not.toContain('merger');
  });
});

const WIRES = {
  openai: {
    env: (origin: string) => ({ OPENAI_API_KEY: '', OPENAI_BASE_URL: `${origin}/v1` }),
    model: 'openai/gpt-4o-mini',
    failure: (message: string) => ({ error: { message, type: 'invalid_request_error', code: null } }),
    events: (message: string) => [{ error: { message, type: 'invalid_request_error', code: null } }],
  },
  anthropic: {
    env: (origin: string) => ({ ANTHROPIC_API_KEY: '', ANTHROPIC_BASE_URL: origin }),
    model: 'anthropic/claude-sonnet-4-6',
    failure: (message: string) => ({ type: 'error', error: { type: 'invalid_request_error', message } }),
    events: (message: string) => [{ type: 'error', error: { type: 'invalid_request_error', message } }],
  },
  google: {
    env: (origin: string) => ({ GOOGLE_API_KEY: '', GOOGLE_BASE_URL: origin }),
    model: 'google/gemini-2.5-flash',
    failure: (message: string) => ({ error: { code: 400, message, status: 'INVALID_ARGUMENT' } }),
    events: (message: string) => [{ error: { code: 400, message, status: 'INVALID_ARGUMENT' } }],
  },
} as const;

/** A secret that looks like a word: only who knows it can find it. */
const SECRET = 'correct horse battery staple'.replaceAll(' ', '.');

describe.each(Object.entries(WIRES))(
  'an error inside a 200, by the wire format of %s',
  (wire, { env, model, failure, events }) => {
    let gateway: TestGateway;

    beforeAll(async () => {
      gateway = await startGateway({ ...env(upstream.origin), [`${wire.toUpperCase()}_API_KEY`]: SECRET });
    });

    afterAll(() => gateway.close());

    const said = `Your key ${SECRET} may not say ${PROMPT}`;

    it('has no part of the secret that was used', async () => {
      upstream.begin(answering(failure(said)));

      const answer = await chat(gateway, hello({ model }));

      expect(answer.status).toBe(400);
      expect(answer.text).not.toMatch(/horse|battery|staple/);
    });

    it('has none in a stream either, before the first piece or after it', async () => {
      upstream.begin(streaming(...events(said)));

      const answer = await chat(gateway, hello({ model, stream: true }));

      expect(answer.status).toBe(400);
      expect(answer.text).not.toMatch(/horse|battery|staple/);
    });

    it('has none where the secret lies across the end of what is quoted', async () => {
      for (const length of [985, 990, 995, 1000, 4080, 4090]) {
        upstream.begin(answering(failure(`${'x '.repeat(length / 2)}${SECRET}`)));

        expect((await chat(gateway, hello({ model }))).text).not.toMatch(/correct|horse/);
      }
    });
  },
);

describe('a success that echoes the secret of its request', () => {
  it('is passed on without it, whole and streamed', async () => {
    const gateway = await startGateway({ OPENAI_API_KEY: SECRET, OPENAI_BASE_URL: `${upstream.origin}/v1` });
    const said = `Authorization: Bearer ${SECRET}, once more ${SECRET}.`;
    const blotted = said.replaceAll(SECRET, '*'.repeat(SECRET.length));
    const model = 'openai/gpt-4o-mini';

    upstream.begin(answering(completion(said)));
    const whole = await chat(gateway, hello({ model }));
    upstream.begin(streaming(chunk({ content: said }, 'stop'), '[DONE]'));
    const streamed = await chat(gateway, hello({ model, stream: true }));
    await gateway.close();

    expect(completionOf(whole).choices[0]?.message.content).toBe(blotted);
    expect(streamedText(eventsOf(streamed.text).chunks)).toBe(blotted);
  });
});

describe('an error inside one choice', () => {
  it('has no part of the secret that was used', async () => {
    const gateway = await startGateway({ OPENAI_API_KEY: SECRET, OPENAI_BASE_URL: `${upstream.origin}/v1` });
    const error = { message: `The key is ${SECRET}`, code: 400 };
    upstream.begin(answering(completion('x', { choices: [{ index: 0, message: {}, error }] })));

    const answer = await chat(gateway, hello({ model: 'openai/gpt-4o-mini' }));
    await gateway.close();

    expect([answer.status, /horse/.test(answer.text)]).toEqual([400, false]);
  });
});

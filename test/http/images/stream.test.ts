// POST /v1/images/generations with `stream`: drafts where the provider gives them, then each whole image.
import type { ServerResponse } from 'node:http';
import { request } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../../src/domain/time.ts';
import type { ImageEvent } from '../../../src/generated/types.ts';
import { validator } from '../../../src/lib/schemas.ts';
import { errorOf } from '../../support/chat.ts';
import { addKey, startGateway, type TestGateway } from '../../support/gateway.ts';
import { draw, fox, pictured, pngSize } from '../../support/images.ts';
import { callRow, callRows, settled } from '../../support/rows.ts';
import { failure, type Reply, startUpstream, type TestUpstream, upstreamEnv } from '../../support/upstream.ts';

const validateImageEvent = validator('ImageEvent');

const NOW = Date.parse('2026-11-22T12:00:00Z');
const SIZE = { size: '1024x1024', quality: 'high', background: 'opaque', output_format: 'png' };
const USAGE = {
  input_tokens: 10,
  output_tokens: 1000,
  total_tokens: 1010,
  input_tokens_details: { text_tokens: 10, image_tokens: 0 },
};

let upstream: TestUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
  const env = {
    OPENAI_API_KEY: 'a',
    OPENAI_BASE_URL: `${upstream.origin}/v1`,
    ...upstreamEnv('acme', upstream.origin, 'sandbox-image-max', 'sandbox-image-max=5/40'),
  };
  gateway = await startGateway(env, { clock: new ManualClock(NOW) });
});

beforeEach(() => upstream.begin(pictured()));

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const draft = (base64: string, position: number): object => ({
  type: 'image_generation.partial_image',
  b64_json: base64,
  partial_image_index: position,
  created_at: 1,
  ...SIZE,
});

const whole = (more: object = {}): object => ({
  type: 'image_generation.completed',
  b64_json: 'aGkK',
  created_at: 1,
  ...SIZE,
  usage: USAGE,
  ...more,
});

function write(response: ServerResponse, ...events: object[]): void {
  if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of events) response.write(`event: ${Object(event).type}\ndata: ${JSON.stringify(event)}\n\n`);
}

const inEvents =
  (...events: object[]): Reply =>
  (response) => {
    write(response, ...events);
    response.end();
  };

/** The events of an answer, each under its own name. */
function eventsOf({ text }: { text: string }): ImageEvent[] {
  return text
    .split('\n\n')
    .slice(0, -1)
    .map((event) => {
      const [, name, data = ''] = /^event: (.+)\ndata: (.+)$/.exec(event) ?? [];
      const parsed: unknown = JSON.parse(data);
      if (!validateImageEvent(parsed) || parsed.type !== name) throw new Error(`no image event: ${event}`);
      return parsed;
    });
}

const streamed = (more: object = {}): object => fox({ model: 'openai/gpt-image-2', stream: true, ...more });

describe('a stream of an image', () => {
  it('shows the drafts that the provider gives, then the image with its usage, cost and metadata', async () => {
    upstream.begin(inEvents(draft('YQ==', 0), draft('Yg==', 1), whole()));

    const answer = await draw(gateway, streamed({ partial_images: 2 }));

    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'text/event-stream; charset=utf-8']);
    const ours = { created_at: NOW / 1000, ...SIZE };
    expect(eventsOf(answer)).toEqual([
      { type: 'image_generation.partial_image', b64_json: 'YQ==', partial_image_index: 0, ...ours },
      { type: 'image_generation.partial_image', b64_json: 'Yg==', partial_image_index: 1, ...ours },
      {
        type: 'image_generation.completed',
        b64_json: 'aGkK',
        ...ours,
        usage: expect.objectContaining({ ...USAGE, cost: 0.03005 }),
        metadata: expect.objectContaining({ requested_model: 'openai/gpt-image-2', used_provider: 'openai' }),
      },
    ]);
    expect(upstream.received.map(({ json }) => json)).toEqual([
      { model: 'gpt-image-2', prompt: 'a red fox', size: '64x32', stream: true, partial_images: 2 },
    ]);
    expect(callRow(gateway, answer)).toMatchObject({ stream: 1, statusCode: 200, cost: 30_050_000_000n });
  });

  it('gives pictures of megabytes as the provider sent them', async () => {
    const [rough, fine, done] = ['AAAA', 'BBBB', 'CCCC'].map((text) => text.repeat(500_000));
    upstream.begin(inEvents(draft(rough ?? '', 0), draft(fine ?? '', 1), whole({ b64_json: done })));

    const events = eventsOf(await draw(gateway, streamed({ partial_images: 2 })));

    expect(events.map(({ b64_json: base64 }) => [base64 === rough, base64 === fine, base64 === done])).toEqual([
      [true, false, false],
      [false, true, false],
      [false, false, true],
    ]);
  });

  it('has one event for each image where the provider gives no drafts, the last with the usage of all', async () => {
    upstream.begin(pictured({ data: [{ b64_json: 'YQ==' }, { b64_json: 'Yg==' }], usage: USAGE }));

    const answer = await draw(gateway, streamed({ model: 'acme/sandbox-image-max', n: 2, partial_images: 3 }));

    expect(eventsOf(answer).map(({ type, b64_json, usage }) => [type, b64_json, usage?.total_tokens])).toEqual([
      ['image_generation.completed', 'YQ==', undefined],
      ['image_generation.completed', 'Yg==', 1010],
    ]);
    expect(upstream.received.map(({ json }) => json)).toEqual([
      { model: 'sandbox-image-max', prompt: 'a red fox', size: '64x32', n: 2 },
    ]);
  });

  it('comes from the sandbox with drafts', async () => {
    const answer = await draw(gateway, streamed({ model: 'sandbox-image-plus', partial_images: 3 }));

    const events = eventsOf(answer);
    expect(events.map(({ type, b64_json }) => [type.split('.')[1], pngSize(b64_json)])).toEqual([
      ['partial_image', [64, 32]],
      ['partial_image', [64, 32]],
      ['partial_image', [64, 32]],
      ['completed', [64, 32]],
    ]);
    expect(new Set(events.map(({ b64_json }) => b64_json)).size).toBe(4);
    expect(events.at(-1)?.usage?.cost).toBe(0);
  });

  it('has its metadata in the form that the caller asks for', async () => {
    const answer = await draw(gateway, streamed({ model: 'sandbox-image-plus' }), {
      headers: [['x-metadata-form', 'strings']],
    });

    expect(JSON.parse(answer.text.split('data: ')[1] ?? '').metadata).toMatchObject({ discount: '0', cached: 'false' });
  });
});

describe('a stream that fails', () => {
  it('before anything was shown has the status of its error', async () => {
    upstream.begin(failure(400, 'no foxes'));

    const answer = await draw(gateway, streamed({ partial_images: 1 }));

    expect([answer.status, errorOf(answer)?.code]).toEqual([400, 'invalid_request']);
  });

  it.each<[string, Reply]>([
    ['breaks off', inEvents(draft('YQ==', 0))],
    [
      'sends an error',
      inEvents(draft('YQ==', 0), { type: 'error', error: { message: 'overloaded', type: 'server_error' } }),
    ],
    [
      'sends more drafts than are ever asked for',
      inEvents(...[0, 1, 2, 3].map((each) => draft('YQ==', each)), whole()),
    ],
  ])('after a draft is told in band, and no other provider is tried, when the upstream %s', async (_, reply) => {
    upstream.begin(reply);

    const answer = await draw(gateway, streamed({ partial_images: 3 }));

    const events = answer.text.trim().split('\n\n');
    expect([answer.status, JSON.parse(events.at(-1)?.replace('data: ', '') ?? '').error.code]).toEqual([
      200,
      'upstream_error',
    ]);
    expect(JSON.parse(callRow(gateway, answer).attemptsJson ?? '')).toHaveLength(1);
    expect(callRow(gateway, answer)).toMatchObject({ statusCode: 502, cost: 0n });
  });
});

it('that stalls after a draft costs a key with a limit all that was held back', async () => {
  const impatient = await startGateway({
    OPENAI_API_KEY: 'a',
    OPENAI_BASE_URL: `${upstream.origin}/v1`,
    IDLE_TIMEOUT_MS: '200',
  });
  const key = addKey(impatient, { usageLimit: '5' });
  upstream.begin((response) => write(response, draft('YQ==', 0)));

  const answer = await draw(impatient, streamed({ partial_images: 1 }), key);

  const { statusCode: status, reservation: reserved, cost } = callRow(impatient, answer);
  await impatient.close();
  expect([status, cost, reserved > 0n]).toEqual([504, reserved, true]);
});

describe('a reader who leaves', () => {
  /** Leaves as soon as something has come, or, where nothing does, when the upstream has the request. */
  async function leave(partials: number, seen: Promise<unknown>): Promise<void> {
    const outgoing = request(`${gateway.origin}/v1/images/generations`, {
      method: 'POST',
      agent: false,
      headers: { authorization: `Bearer ${gateway.firstRun.gatewayKey}`, 'content-type': 'application/json' },
    });
    outgoing.on('error', () => {});
    const shown = new Promise<void>((resolve) => {
      outgoing.on('response', (response) => {
        response.on('error', () => {});
        response.once('data', () => resolve());
      });
    });
    outgoing.end(JSON.stringify(streamed({ partial_images: partials })));
    await Promise.race([shown, seen]);
    outgoing.destroy();
  }

  const last = async () => settled(gateway, String(callRows(gateway).at(-1)?.requestId));

  it('after a draft pays for the image: the upstream is read to its end', async () => {
    const left = Promise.withResolvers<void>();
    upstream.begin(async (response) => {
      write(response, draft('YQ==', 0));
      await left.promise;
      write(response, whole());
      response.end();
    });

    await leave(1, new Promise(() => {}));
    left.resolve();

    expect(await last()).toMatchObject({ cost: 30_050_000_000n });
  });

  it('before a draft cancels the call upstream, and pays for the prompt', async () => {
    const arrived = Promise.withResolvers<void>();
    const closed = Promise.withResolvers<void>();
    upstream.begin((response) => {
      response.on('close', () => closed.resolve());
      arrived.resolve();
    });

    await leave(1, arrived.promise);
    await closed.promise;

    expect(await last()).toMatchObject({ statusCode: 499, errorCode: 'client_closed_request' });
  });
});

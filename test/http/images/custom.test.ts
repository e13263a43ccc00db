// POST /v1/images/generations: with models of the customer's own.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Actor } from '../../../src/admin/audit/audit-trail.ts';
import { createCustomModel } from '../../../src/admin/providers/custom-models.ts';
import { createCustomProvider } from '../../../src/admin/providers/custom-providers.ts';
import { createCatalog } from '../../../src/catalog/catalog.ts';
import { systemClock } from '../../../src/domain/time.ts';
import { addKey, startGateway, type TestGateway } from '../../support/gateway.ts';
import { draw, fox, imagesOf, pictured } from '../../support/images.ts';
import { keySums } from '../../support/rows.ts';
import { completion, json, startUpstream, type TestUpstream } from '../../support/upstream.ts';

const catalog = createCatalog({ sandbox: true, upstreams: [], clock: systemClock });

let upstream: TestUpstream;
let gateway: TestGateway;

beforeEach(async () => {
  upstream = await startUpstream();
  upstream.begin(pictured());
  gateway = await startGateway({ ALLOW_PRIVATE_UPSTREAMS: new URL(upstream.origin).host });
});

afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

/** The one model of the custom provider `acme`, which asks for no key. */
function addModel(model: string, more: object, wire = 'openai'): void {
  const actor: Actor = { kind: 'cli', organizationId: gateway.firstRun.organizationId };
  const body = { name: 'acme', wire, baseUrl: `${upstream.origin}/own/v1`, keyless: true };
  const write = { now: Date.now(), catalog, allowPrivateUpstreams: gateway.config.allowPrivateUpstreams };
  const { customProvider } = createCustomProvider(gateway.db, actor, body, write);
  createCustomModel(gateway.db, actor, { customProviderId: customProvider.id, model, ...more }, Date.now());
}

describe('a custom model that makes images', () => {
  it('with a price for each alone is known to cost that, also to a key with a usage limit', async () => {
    addModel('flux', { outputModalities: ['image'], pricing: { per_image: '0.03' } });
    const { token, id } = addKey(gateway, { usageLimit: '1' });

    const { usage, metadata } = imagesOf(await draw(gateway, fox({ model: 'acme/flux' }), { token }));

    expect([usage.cost, keySums(gateway, id).usage]).toEqual([0.03, 30_000_000_000n]);
    expect([metadata.requested_provider, metadata.used_model, metadata.routing[0]?.credentialSource]).toEqual([
      'acme',
      'flux',
      'byok',
    ]);
    expect(upstream.received.map(({ path, json: sent }) => [path, sent])).toEqual([
      ['/own/v1/images/generations', { ...fox(), model: 'flux' }],
    ]);
  });

  it('that gives text too draws in a chat', async () => {
    addModel('banana', { outputModalities: ['text', 'image'] });
    const images = [{ type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } }];
    upstream.begin(
      json(completion('', { choices: [{ index: 0, message: { role: 'assistant', content: '', images } }] })),
    );

    const answer = imagesOf(await draw(gateway, fox({ model: 'acme/banana' })));

    expect([answer.data, answer.usage.input_tokens, answer.usage.output_tokens]).toEqual([
      [{ b64_json: 'aGk=' }],
      10,
      5,
    ]);
    expect(upstream.received.map(({ path, json: sent }) => [path, sent])).toEqual([
      [
        '/own/v1/chat/completions',
        {
          model: 'banana',
          messages: [{ role: 'user', content: 'a red fox' }],
          modalities: ['image', 'text'],
          image_config: { aspect_ratio: '16:9' },
        },
      ],
    ]);
  });

  it('at a provider whose wire format makes none is refused', async () => {
    addModel('painter', { outputModalities: ['image'] }, 'anthropic');

    const answer = await draw(gateway, fox({ model: 'acme/painter' }));

    expect([answer.status, answer.json]).toMatchObject([
      400,
      { error: { message: 'The model `acme/painter` does not make images.', param: '/model' } },
    ]);
    expect(upstream.received).toEqual([]);
  });
});

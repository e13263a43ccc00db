// POST /v1/chat/completions with names of one's own for lists of models (src/config/README.md, "Aliases").
import { hash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { changeAlias, createAlias, deleteAlias } from '../../../src/admin/providers/aliases.ts';
import { createCustomModel } from '../../../src/admin/providers/custom-models.ts';
import { createProject } from '../../../src/admin/tenants/projects.ts';
import { createCatalog } from '../../../src/catalog/catalog.ts';
import { systemClock } from '../../../src/domain/time.ts';
import type { AliasCreate, AliasPatch } from '../../../src/generated/types.ts';
import { chat, completionOf, errorOf, eventsOf, hello } from '../../support/chat.ts';
import { addKey, addRule, startGateway, type TestGateway } from '../../support/gateway.ts';
import { addOwnModels } from '../../support/own-models.ts';
import type { Answer } from '../../support/request.ts';
import {
  chunk,
  completion,
  events,
  failure,
  json,
  startUpstream,
  type TestUpstream,
  USAGE_CHUNK,
  upstreamEnv,
} from '../../support/upstream.ts';

let one: TestUpstream;
let two: TestUpstream;
let gateway: TestGateway;

const start = (caching = false): Promise<TestGateway> =>
  startGateway(
    {
      ...upstreamEnv('one', one.origin, 'large,small', 'large=9/9,small=1/1'),
      ...upstreamEnv('two', two.origin, 'large,medium', 'large=8/8,medium=5/5'),
      ALLOW_PRIVATE_UPSTREAMS: new URL(one.origin).host,
    },
    { caching },
  );

beforeEach(async () => {
  one = await startUpstream();
  two = await startUpstream();
  gateway = await start();
});
afterEach(async () => {
  await gateway.close();
  await one.close();
  await two.close();
});

/** Written on another connection, as another process does. */
const actor = () => ({ kind: 'cli', organizationId: gateway.firstRun.organizationId }) as const;
const write = () => ({
  now: Date.now(),
  catalog: createCatalog({ sandbox: true, upstreams: gateway.config.upstreams, clock: systemClock }),
});
const add = (name: string, models: string[], more: Partial<AliasCreate> = {}): string =>
  createAlias(gateway.db, actor(), { name, models, ...more }, write()).alias.id;
const change = (id: string, patch: AliasPatch): void => {
  changeAlias(gateway.db, actor(), id, patch, write());
};

const servedBy = (answer: Answer): string | object => {
  if (answer.status !== 200) return errorOf(answer);
  const { requested_model, used_provider, used_model } = completionOf(answer).metadata;
  return `${requested_model}: ${used_provider}/${used_model}`;
};
const ask = async (model: string, options?: Parameters<typeof chat>[2]) =>
  servedBy(await chat(gateway, hello({ model }), options));
const attempts = async (model: string) => {
  const answer = await chat(gateway, hello({ model }));
  return completionOf(answer).metadata.routing.map(({ provider, model: used }) => `${provider}/${used}`);
};

describe('a request for an alias', () => {
  it('is served by the first model of the list, not the cheapest, and by its cheapest provider', async () => {
    add('fast', ['large', 'small']);
    expect(await ask('fast')).toBe('fast: two/large');
  });

  it('fails over along the list, three attempts in all', async () => {
    add('fast', ['medium', 'one/small', 'large']);
    two.begin(failure(503, 'later'));
    expect(await attempts('fast')).toEqual(['two/medium', 'one/small']);
    one.begin(failure(503, 'later'));
    const failed = await chat(gateway, hello({ model: 'fast' }));
    expect([failed.status, one.received.length + two.received.length - 1]).toEqual([503, 3]);
  });

  it('is streamed like any other', async () => {
    add('fast', ['medium', 'small']);
    two.begin(failure(503, 'later'));
    one.begin(events(chunk({ role: 'assistant', content: 'Hi' }), chunk({}, 'stop'), USAGE_CHUNK));
    const { chunks, done } = eventsOf((await chat(gateway, hello({ model: 'fast', stream: true }))).text);
    expect([done, chunks.at(-1)?.metadata?.requested_model, chunks.at(-1)?.metadata?.used_model]).toEqual([
      true,
      'fast',
      'small',
    ]);
  });

  it('takes the same mapping once, where two names of the list mean it', async () => {
    add('fast', ['two/large', 'large']);
    two.begin(failure(503, 'later'));
    expect(await attempts('fast')).toEqual(['two/large', 'one/large']);
  });

  it('takes a target that rests last', async () => {
    add('fast', ['medium', 'small']);
    two.begin(failure(503, 'later'));
    for (let n = 0; n < 3; n += 1) await ask('fast');
    expect(await attempts('fast')).toEqual(['one/small']);
  });

  it('is drawn by weight from its request id, and then follows the list', async () => {
    add('split', ['medium', 'small', 'one/large'], { weights: [30, 70, 0] });
    two.begin(failure(503, 'later'));
    const drawn = new Set<string>();
    for (let n = 0; n < 20; n += 1) {
      two.begin(json(completion('Hi')));
      const answer = await chat(gateway, hello({ model: 'split' }));
      const unit = hash('sha256', String(answer.headers['x-request-id']), 'buffer').readUIntBE(0, 6) / 2 ** 48;
      const expected = unit * 100 < 30 ? 'split: two/medium' : 'split: one/small';
      drawn.add(expected);
      expect(servedBy(answer)).toBe(expected);
    }
    expect([...drawn].sort()).toEqual(['split: one/small', 'split: two/medium']);
    addRule(gateway, 'organization', { ruleType: 'deny_models', ruleValue: { models: ['small'] } });
    // What is denied is not drawn; what has no weight comes last.
    for (let n = 0; n < 4; n += 1) expect(await ask('split')).toBe('split: two/medium');
    two.begin(failure(503, 'later'));
    expect(await attempts('split')).toEqual(['two/medium', 'one/large']);
  });

  it('means custom models too, in the order of the list, whatever they cost', async () => {
    addOwnModels(gateway.db, gateway.firstRun, one.origin, gateway.config.allowPrivateUpstreams, {
      llama: { inputPricePerMillion: '50', outputPricePerMillion: '50' },
    });
    add('fast', ['own/llama', 'small']);
    expect(await ask('fast')).toBe('fast: own/llama');
  });
});

describe('an alias takes effect on the next call, when another process', () => {
  it('makes it, changes it and deletes it', async () => {
    expect(await ask('fast')).toMatchObject({ code: 'model_not_found' });
    const id = add('fast', ['medium']);
    expect(await ask('fast')).toBe('fast: two/medium');
    change(id, { models: ['small'] });
    expect(await ask('fast')).toBe('fast: one/small');
    deleteAlias(gateway.db, actor(), id, Date.now());
    expect(await ask('fast')).toMatchObject({ message: 'The model `fast` does not exist.' });
  });

  it('changes it while a call runs, whose candidates stay those that were judged', async () => {
    const id = add('fast', ['medium', 'small']);
    two.begin((response, received) => {
      change(id, { models: ['two/large'] });
      return failure(503, 'later')(response, received);
    });
    expect(await attempts('fast')).toEqual(['two/medium', 'one/small']);
  });

  it('changes it, so that answers in the cache are those of other models', async () => {
    await gateway.close();
    gateway = await start(true);
    const id = add('fast', ['medium', 'small']);
    const hits = async () => {
      const answer = await chat(gateway, hello({ model: 'fast' }));
      return [servedBy(answer), answer.headers['x-cache']];
    };
    expect([await hits(), await hits()]).toEqual([
      ['fast: two/medium', undefined],
      ['fast: two/medium', 'HIT'],
    ]);
    change(id, { models: ['small', 'medium'] });
    expect(await hits()).toEqual(['fast: one/small', undefined]);
    addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['small'] } });
    expect(await hits()).toEqual(['fast: two/medium', undefined]);
  });
});

describe('rules judge the models of an alias', () => {
  it('so a denied model is not tried, and a list of denied ones is 403 in the words of the rule', async () => {
    add('fast', ['medium', 'small']);
    const { id } = addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['medium'] } });
    expect(await ask('fast')).toBe('fast: one/small');
    addRule(gateway, 'key', { ruleType: 'deny_providers', ruleValue: { providers: ['one'] } });
    expect(await ask('fast')).toMatchObject({
      code: 'permission_denied',
      message: expect.stringMatching(/^Access denied: provider blocked: one is denied by rule rule_[0-9a-f]{32}\.$/),
    });
    expect(id).toMatch(/^rule_/);
  });

  it('and never the alias: its name and its prefix match nothing', async () => {
    add('fast', ['medium']);
    addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['fast', 'fast*'] } });
    expect(await ask('fast')).toBe('fast: two/medium');
    addRule(gateway, 'key', { ruleType: 'allow_models', ruleValue: { models: ['fast', 'fast*', 'small'] } });
    expect(await ask('fast')).toMatchObject({ code: 'permission_denied' });
  });

  it('and the decision records what was judged, whatever the alias becomes', async () => {
    const id = add('fast', ['medium', 'small']);
    await ask('fast');
    change(id, { models: ['one/large'] });
    const row = gateway.db.connection
      .prepare<[], { requestedModel: string; inputJson: string }>(
        'SELECT calls.requestedModel, decisions.inputJson FROM calls JOIN decisions ON decisions.callId = calls.id',
      )
      .get();
    expect(row?.requestedModel).toBe('fast');
    const { candidates } = JSON.parse(row?.inputJson ?? '{}');
    expect(candidates.map(({ id: candidate }: { id: string }) => candidate)).toEqual(['two/medium', 'one/small']);
  });
});

describe('names', () => {
  it('of a project come before those of its organization, and mean nothing in another project', async () => {
    add('fast', ['medium']);
    const project = createProject(gateway.db, actor(), { name: 'Other' }, Date.now()).project.id;
    add('fast', ['small'], { projectId: project });
    add('ours', ['small'], { projectId: project });
    const { token } = addKey(gateway, { projectId: project });
    expect([await ask('fast'), await ask('fast', { token })]).toEqual(['fast: two/medium', 'fast: one/small']);
    expect([await ask('ours', { token }), await ask('ours')]).toEqual([
      'ours: one/small',
      expect.objectContaining({ code: 'model_not_found' }),
    ]);
  });

  it('of the catalogue mean the alias where there is one; behind a provider they mean the model', async () => {
    add('large', ['small']);
    expect([await ask('large'), await ask('one/large')]).toEqual(['large: one/small', 'one/large: one/large']);
  });

  it('that models get later make no loop: an alias never leads to an alias', async () => {
    addOwnModels(gateway.db, gateway.firstRun, one.origin, gateway.config.allowPrivateUpstreams, { first: {} });
    add('fast', ['own/first']);
    const own = gateway.db.connection.prepare<[], string>('SELECT id FROM custom_providers').pluck().get();
    createCustomModel(gateway.db, actor(), { customProviderId: own, model: 'fast' }, Date.now());
    expect([await ask('fast'), await ask('own/fast')]).toEqual(['fast: own/first', 'own/fast: own/fast']);
  });

  it('whose models are gone are 404, and those that remain serve', async () => {
    addOwnModels(gateway.db, gateway.firstRun, one.origin, gateway.config.allowPrivateUpstreams, { first: {} });
    add('fast', ['own/first', 'small']);
    add('slow', ['own/first']);
    gateway.db.connection.exec('UPDATE custom_models SET deletedAt = 1');
    expect(await ask('fast')).toBe('fast: one/small');
    expect(await ask('slow')).toMatchObject({
      code: 'model_not_found',
      message: 'No model of the alias `slow` is served any more.',
    });
  });
});

describe('a request without a model', () => {
  const nameless = { messages: [{ role: 'user', content: 'Hello' }] };

  it('is served by the alias `default`, where there is one; else it is 400', async () => {
    const missing = { code: 'invalid_request', param: '/model', message: '/model is missing.' };
    expect(errorOf(await chat(gateway, nameless))).toMatchObject(missing);
    const id = add('default', ['medium']);
    expect(servedBy(await chat(gateway, nameless))).toBe('default: two/medium');
    expect(servedBy(await chat(gateway, { ...nameless, model: null }))).toBe('default: two/medium');
    expect(await ask('default')).toBe('default: two/medium');
    deleteAlias(gateway.db, actor(), id, Date.now());
    expect(errorOf(await chat(gateway, nameless))).toMatchObject(missing);
  });

  it('is judged in its shape as any other', async () => {
    add('default', ['medium']);
    expect(errorOf(await chat(gateway, { model: '', ...nameless }))).toMatchObject({ param: '/model' });
    expect(errorOf(await chat(gateway, {}))).toMatchObject({ param: '/messages' });
    expect(errorOf(await chat(gateway, '[]'))).toMatchObject({ code: 'invalid_request', param: '' });
    const hidden = '{"__proto__": {"model": "small"}, "messages": [{"role": "user", "content": "Hello"}]}';
    expect(errorOf(await chat(gateway, hidden)).code).toBe('unsupported_parameter');
  });
});

it('the model that moderates is not that of an alias', async () => {
  add('sandbox-moderation', ['small']);
  const answer = await fetch(`${gateway.origin}/v1/moderations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.firstRun.gatewayKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ input: 'Hello' }),
  });
  expect([answer.status, JSON.parse(await answer.text()).model]).toEqual([200, 'sandbox-moderation']);
});

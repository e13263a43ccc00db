import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { changeTagSet, createTagSet, deleteTagSet } from '../../../src/admin/providers/tag-sets.ts';
import { createCatalog } from '../../../src/catalog/catalog.ts';
import { systemClock } from '../../../src/domain/time.ts';
import { chat, completionOf, errorOf, hello } from '../../support/chat.ts';
import { addRule, startGateway, type TestGateway } from '../../support/gateway.ts';
import { completion, failure, json, startUpstream, type TestUpstream, upstreamEnv } from '../../support/upstream.ts';

let one: TestUpstream;
let two: TestUpstream;
let gateway: TestGateway;

beforeEach(async () => {
  one = await startUpstream();
  two = await startUpstream();
  gateway = await startGateway({
    ...upstreamEnv('one', one.origin, 'large', 'large=1/1'),
    ...upstreamEnv('two', two.origin, 'large', 'large=2/2'),
  });
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
const putTags = (target: string, ...tags: string[]): string =>
  createTagSet(gateway.db, actor(), { target, tags }, write()).tagSet.id;

const ask = async (model: string) => {
  const answer = await chat(gateway, hello({ model }));
  return answer.status === 200 ? completionOf(answer).metadata.used_provider : errorOf(answer).message;
};

describe('tag rules', () => {
  it('judge facts of the catalogue, and the answer says where it was served', async () => {
    const { id } = addRule(gateway, 'organization', { ruleType: 'allow_tags', ruleValue: { tags: ['region:eu'] } });
    const free = completionOf(await chat(gateway, hello({ model: 'sandbox-free' })));
    expect(free.metadata.used_region).toBe('eu');
    const origin = ' This is an organization IAM rule set by the org admin.';
    expect(await ask('sandbox-paid')).toBe(
      `Access denied: model not allowed: tags no_training, region:us, retention:none, stability:stable are not among the tags allowed by rule ${id}.${origin}`,
    );
    expect(await ask('large')).toBe(
      `Access denied: model not allowed: it has no tags, and rule ${id} asks for some.${origin}`,
    );
  });

  it('hold for the organization’s own tags from the next call on, in lists too', async () => {
    addRule(gateway, 'key', { ruleType: 'allow_tags', ruleValue: { tags: ['region:eu'] } });
    const listed = async () => {
      const answer = await fetch(`${gateway.origin}/v1/models`, {
        headers: { authorization: `Bearer ${gateway.firstRun.gatewayKey}` },
      });
      const { data } = JSON.parse(await answer.text());
      return data.map(({ id, providers }: { id: string; providers: { tags?: string[] }[] }) => [
        id,
        ...providers.map(({ tags }) => tags?.filter((tag) => tag.startsWith('region:'))),
      ]);
    };
    const before = [['sandbox-free', ['region:eu']]];
    expect(await listed()).toEqual(before);

    one.begin(json(completion('Hi')));
    const id = putTags('one/*', 'region:eu');
    expect(await ask('large')).toBe('one');
    expect(await listed()).toEqual([['large', ['region:eu']], ...before]);

    changeTagSet(gateway.db, actor(), id, { tags: ['region:us'] }, write());
    expect(await ask('large')).toMatch(/^Access denied: model not allowed: tag region:us is not among/);
    expect(await listed()).toEqual(before);
    deleteTagSet(gateway.db, actor(), id, Date.now());
    expect(await ask('large')).toMatch(/^Access denied: model not allowed: it has no tags/);
  });

  it('hold before the next attempt of a call that runs', async () => {
    addRule(gateway, 'member', { ruleType: 'deny_tags', ruleValue: { tags: ['withdrawn'] } });
    one.begin((response, received) => {
      putTags('two/large', 'withdrawn');
      return failure(503, 'later')(response, received);
    });
    two.begin(json(completion('Hi')));
    expect(await ask('large')).toMatch(/^Access denied: model not allowed: tag withdrawn is denied by rule/);
    expect([one.received.length, two.received.length]).toEqual([1, 0]);
  });
});

it('a decision records the tags that it saw', async () => {
  putTags('one/large', 'team:research');
  one.begin(json(completion('Hi')));
  await ask('large');
  const input = gateway.db.connection.prepare<[], string>('SELECT inputJson FROM decisions').pluck().get() ?? '';
  const { candidates } = JSON.parse(input);
  expect(candidates.map(({ id, tags }: { id: string; tags?: string[] }) => [id, tags])).toEqual([
    ['one/large', ['team:research']],
    ['two/large', undefined],
  ]);
});

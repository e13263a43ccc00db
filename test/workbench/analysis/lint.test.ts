import { afterAll, expect, it } from 'vitest';
import { catalogOf } from '../../../src/catalog/catalog.ts';
import { ManualClock } from '../../../src/domain/time.ts';
import { readBundle } from '../../../src/policy/bundle.ts';
import { lintedMappings, lintWorld } from '../../../src/workbench/analysis/lint.ts';
import { organizationSets } from '../../../src/workbench/world/candidates.ts';
import { createJudges } from '../../../src/workbench/world/judges.ts';
import { activeMappings } from '../../../src/workbench/world/world.ts';
import { rule, type SmallRules, smallWorld } from '../small-world.ts';
import { catalog, customMapping } from '../worlds.ts';

const judges = createJudges(readBundle(), lintedMappings(activeMappings(smallWorld())), 0);
afterAll(() => judges.close());

/** Restricts the key, so that only what a test is about is found. */
const ANYTHING = rule('rule_open', 'allow_models', { models: ['gpt*', 'claude*', '42', 'watch'] });

async function findings(rules: SmallRules): Promise<string[][]> {
  const report = await lintWorld(smallWorld(rules), judges);
  return report.findings.map(({ code, scope, subjectId, ruleIds, message }) => [
    code,
    scope,
    subjectId,
    ...ruleIds,
    message,
  ]);
}

it('finds nothing where every rule decides something', async () => {
  expect(await findings({ organization: [rule('r1', 'deny_models', { models: ['gpt-5'] })], key: [ANYTHING] })).toEqual(
    [],
  );
});

it('names rules by their descriptions (issue 12, 14)', async () => {
  const denied = { ...rule('r1', 'deny_models', { models: ['gpt-5', 'gpt-5'] }), description: 'No GPT-5' };
  const twice = { ...rule('r2', 'deny_models', { models: ['gpt-5'] }), description: 'Once more' };
  const messages = (await findings({ organization: [denied], key: [ANYTHING, twice] })).map((finding) =>
    finding.at(-1),
  );

  expect(messages.join('\n')).toContain('r2 (Once more)');
});

it('finds keys that are open to every future model, whatever is denied by name', async () => {
  expect(await findings({ key: [rule('r1', 'deny_models', { models: ['gpt-5'] })] })).toEqual([
    ['open-to-future-models', 'key', 'key_1', 'The key one (key_1) is open to every model that the catalogue gains.'],
  ]);
});

it.each([
  rule('r1', 'allow_models', { models: ['gpt-5'] }),
  rule('r1', 'allow_providers', { providers: ['openai'] }),
  rule('r1', 'allow_pricing', { pricingType: 'free' }),
  rule('r1', 'deny_pricing', { maxInputPrice: '100' }),
])('takes a key with $ruleType for restricted', async (only) => {
  expect(await findings({ member: [only] })).toEqual([]);
});

it('finds dead rules, and entries that the catalogue does not know', async () => {
  expect(
    await findings({
      key: [
        ANYTHING,
        rule('r1', 'deny_models', { models: ['gpt-9'] }),
        rule('r2', 'deny_models', { models: ['mistral*'] }, 'report'),
        rule('r3', 'deny_providers', { providers: ['nobody'] }),
        rule('r4', 'deny_tags', { tags: ['regoin:eu', 'shape:*'] }),
      ],
    }),
  ).toEqual([
    [
      'unknown-model',
      'key',
      'key_1',
      'r1',
      'The rule r1: "gpt-9" is not the name of a model in the catalogue; did you mean `gpt-5`?',
    ],
    ['unknown-model', 'key', 'key_1', 'r2', 'The rule r2: "mistral*" begins no name of a model in the catalogue.'],
    ['unknown-provider', 'key', 'key_1', 'r3', 'The rule r3: "nobody" is not a provider that serves a model.'],
    [
      'unknown-tag',
      'key',
      'key_1',
      'r4',
      'The rule r4: "regoin:eu" is not a tag that a model has; did you mean `region:eu`?',
    ],
    ['unknown-tag', 'key', 'key_1', 'r4', 'The rule r4: "shape:*" begins no tag that a model has.'],
    ['dead-rule', 'key', 'key_1', 'r1', 'The rule r1 matches nothing that exists.'],
    ['dead-rule', 'key', 'key_1', 'r3', 'The rule r3 matches nothing that exists.'],
    ['dead-rule', 'key', 'key_1', 'r4', 'The rule r4 matches nothing that exists.'],
  ]);
});

it('finds rules that others of the scope, or outside it, leave nothing to decide', async () => {
  expect(
    await findings({
      organization: [rule('r1', 'deny_providers', { providers: ['azure'] })],
      key: [
        ANYTHING,
        rule('r2', 'deny_models', { models: ['gpt-5'] }),
        rule('r3', 'deny_models', { models: ['gpt*'] }),
        rule('r4', 'deny_models', { models: ['azure/claude-opus'] }),
      ],
    }),
  ).toEqual([
    ['shadowed-rule', 'key', 'key_1', 'r2', 'The rule r2 decides nothing, because of r3.'],
    [
      'shadowed-rule',
      'key',
      'key_1',
      'r4',
      'The rule r4 decides nothing, because other rules already deny what it could.',
    ],
  ]);
});

it('says first of all that a key reaches nothing, and whose rules those are', async () => {
  const nothing = rule('r1', 'deny_models', { models: ['*'] });
  const first = async (rules: SmallRules) => (await findings(rules))[0];
  const head = ['reaches-nothing', 'key', 'key_1'];
  const of = (whose: string) => `The key one (key_1) reaches nothing: ${whose}.`;
  expect(await first({ key: [rule('r0', 'deny_models', { models: ['gpt-9'] }), nothing] })).toEqual([
    ...head,
    ...['r0', 'r1', of('its own rules let nothing through')],
  ]);
  expect(
    await first({ organization: [nothing], key: [rule('r2', 'deny_models', { models: ['x', 'gpt-5'] })] }),
  ).toEqual([...head, ...['r1', of('the rules of the organization let nothing through')]]);
  expect(
    await first({
      member: [rule('r1', 'allow_models', { models: ['gpt-5'] })],
      key: [rule('r2', 'allow_models', { models: ['opus'] })],
    }),
  ).toEqual([...head, 'r1', 'r2', of('the rules of its owner and its own rules let nothing through together')]);
  const addresses = [
    rule('r1', 'allow_ip_cidrs', { ipCidrs: ['10.0.0.0/8'] }),
    rule('r2', 'deny_ip_cidrs', { ipCidrs: ['10.0.0.0/8'] }),
  ];
  expect(await first({ key: addresses })).toEqual([...head, 'r1', 'r2', of('its own rules let nothing through')]);
});

it('finds allow kinds that match nothing', async () => {
  expect(await findings({ member: [rule('r1', 'allow_models', { models: ['gpt-9'] })] })).toEqual([
    [
      'reaches-nothing',
      'key',
      'key_1',
      'r1',
      'The key one (key_1) reaches nothing: the rules of its owner let nothing through.',
    ],
    [
      'unknown-model',
      'member',
      'mem_1',
      'r1',
      'The rule r1: "gpt-9" is not the name of a model in the catalogue; did you mean `gpt-5`?',
    ],
    [
      'allow-matches-nothing',
      'member',
      'mem_1',
      'r1',
      'The rule r1: allow_models matches nothing that exists, so nothing can be called.',
    ],
  ]);
});

it('finds ranges that lie in others, and says of none that it lies in itself', async () => {
  const found = await findings({
    key: [
      ANYTHING,
      rule('r1', 'allow_ip_cidrs', { ipCidrs: ['10.0.0.0/8', '10.1.0.0/16', '2001:db8::/32'] }),
      rule('r2', 'allow_ip_cidrs', { ipCidrs: ['10.0.0.0/8', '192.0.2.0/24'] }),
      rule('r3', 'deny_ip_cidrs', { ipCidrs: ['10.0.0.0/16'] }),
    ],
  });
  expect(found).toEqual([
    ['overlapping-ranges', 'key', 'key_1', 'r1', 'The rule r1: 10.1.0.0/16 lies in 10.0.0.0/8.'],
    ['overlapping-ranges', 'key', 'key_1', 'r2', 'r1', 'The rules r2, r1 both list 10.0.0.0/8.'],
  ]);
});

it('takes names of custom models and providers for known, and what there is no credential for', async () => {
  const world = smallWorld(
    {
      key: [
        ANYTHING,
        rule('r1', 'allow_models', { models: ['acme/own', 'acme/*', 'acme/none'] }),
        rule('r2', 'deny_providers', { providers: ['custom:acme', 'custom:other'] }),
        rule('r3', 'deny_providers', { providers: ['custom', 'openai'] }),
      ],
    },
    {
      providers: {
        providers: [{ id: 'prov_1', name: 'acme', wire: 'openai', baseUrl: '', keyless: false, fields: [] }],
        mappings: [customMapping('acme', 'own')],
        keys: [],
        tagSets: [],
        aliases: [],
      },
      served: [],
    },
  );
  const [part] = organizationSets([world]);
  const ownJudges = createJudges(readBundle(), lintedMappings(part?.mappings ?? []), 0);
  const { findings: found } = await lintWorld(world, ownJudges);
  await ownJudges.close();
  expect(found.map(({ code, message }) => [code, message])).toEqual([
    ['unknown-model', 'The rule r1: "acme/none" is not the name of a model in the catalogue.'],
    ['unknown-provider', 'The rule r2: "custom:other" is not a provider that serves a model.'],
    ['shadowed-rule', 'The rule r1 decides nothing, because other rules already deny what it could.'],
    ['shadowed-rule', 'The rule r2 decides nothing, because of r3.'],
  ]);
});

it('finds rules for deactivated models', async () => {
  const models = catalog.models().map((model) => ({
    ...model,
    mappings: model.mappings.map((mapping) =>
      mapping.modelId === 'gpt-5' ? { ...mapping, deactivatedAt: '2026-01-01T00:00:00Z' } : mapping,
    ),
  }));
  const later = catalogOf(
    [{ date: '2026-01-01', providers: catalog.providers(), models }],
    new ManualClock('2026-01-31T12:00:00.000Z'),
  );
  const world = {
    ...smallWorld({ key: [ANYTHING, rule('r1', 'deny_models', { models: ['gpt-5'] })] }),
    catalog: later,
  };
  const laterJudges = createJudges(readBundle(), lintedMappings(activeMappings(world)), 0);
  const { findings: found } = await lintWorld(world, laterJudges);
  await laterJudges.close();
  expect(found.map(({ code, message }) => [code, message])).toEqual([
    ['deactivated-model', 'The rule r1: "gpt-5" means models that are deactivated.'],
    ['dead-rule', 'The rule r1 matches nothing that exists.'],
  ]);
});

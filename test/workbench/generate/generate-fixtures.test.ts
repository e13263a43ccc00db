import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCatalog } from '../../../src/catalog/catalog.ts';
import { type PolicyRule, SCOPES } from '../../../src/domain/iam-rule.ts';
import { systemClock } from '../../../src/domain/time.ts';
import type { Fixture } from '../../../src/generated/types.ts';
import { createPdp } from '../../../src/policy/pdp.ts';
import { readFixtureFile } from '../../../src/workbench/fixtures/fixture-file.ts';
import { FixtureSources } from '../../../src/workbench/fixtures/fixture-source.ts';
import { runFixtures } from '../../../src/workbench/fixtures/run-fixtures.ts';
import {
  fixtureText,
  type GeneratedFixture,
  generateFixtures,
} from '../../../src/workbench/generate/generate-fixtures.ts';
import { ruleHolders } from '../../../src/workbench/generate/generate-given.ts';
import type { World, WorldKey, WorldRule } from '../../../src/workbench/world/world.ts';
import { subjects } from '../../policy/arbitraries.ts';
import { ipRule, modelRule, pricingRule, providerRule } from '../../policy/policy-call.ts';
import { propertyRuns, propertyTimeout } from '../../policy/property-runs.ts';

const RUNS = 40;
const pdp = createPdp();
const catalog = createCatalog({ sandbox: true, upstreams: [], clock: systemClock });

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'portcullis-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

interface Rules {
  readonly organization?: readonly PolicyRule[];
  readonly group?: readonly PolicyRule[];
  readonly member?: readonly PolicyRule[];
  readonly key?: readonly PolicyRule[];
}

function worldOf({ organization = [], group = [], member = [], key = [] }: Rules): World {
  const described = (rules: readonly PolicyRule[]): WorldRule[] =>
    rules.map((rule) => ({ ...rule, description: null }));
  const organizationId = 'org_1';
  return {
    catalog,
    servedProviders: new Set(['sandbox']),
    organizations: new Map([
      ['org_1', { id: 'org_1', name: 'Acme', ruleRevision: 0, rules: described(organization), providers: null }],
    ]),
    groups: new Map([
      ['grp_1', { id: 'grp_1', organizationId, name: 'team', holderIds: new Set(['mem_1']), rules: described(group) }],
    ]),
    members: new Map([['mem_1', { id: 'mem_1', organizationId, email: 'dev@example.com', rules: described(member) }]]),
    keys: new Map([
      [
        'key_1',
        {
          id: 'key_1',
          organizationId,
          projectId: null,
          memberId: 'mem_1',
          description: 'CI',
          tags: [],
          rules: described(key),
        },
      ],
    ]),
  };
}

/** The fixtures of everyone in a world, or of a key, its owner and the organization. */
const generated = (world: World, only?: WorldKey): GeneratedFixture[] =>
  ruleHolders(world, only).flatMap((holder) => generateFixtures(world, pdp, holder));

/** What running the fixtures as a file gives: faults, and the names of those that fail. */
function run(fixtures: readonly Fixture[]): { faults: string[]; failed: string[]; requests: number } {
  const file = path.join(folder, 'generated.yaml');
  writeFileSync(file, fixtureText(fixtures, 'Generated.'));
  const loaded = readFixtureFile(file, { sources: new FixtureSources(), realCatalog: () => catalog });
  const results = runFixtures(pdp, loaded.fixtures);
  return {
    faults: loaded.faults.map(({ message }) => message),
    failed: results.filter(({ status }) => status !== 'passed').map(({ fixture }) => fixture.name),
    requests: results.reduce((sum, { cases }) => sum + cases.length, 0),
  };
}

describe('generated fixtures', () => {
  it(
    'pass as they are, whatever the rules',
    () => {
      fc.assert(
        fc.property(subjects, (scopes) => {
          const rulesOf = (scope: string) => scopes.find((subject) => subject.scope === scope)?.rules ?? [];
          const rules = Object.fromEntries(SCOPES.map((scope) => [scope, rulesOf(scope)]));
          const fixtures = generated(worldOf(rules));
          if (fixtures.length === 0) return;
          const { faults, failed, requests } = run(fixtures);
          expect({ faults, failed }).toEqual({ faults: [], failed: [] });
          expect(requests).toBeGreaterThan(0);
        }),
        propertyRuns(RUNS),
      );
    },
    propertyTimeout(RUNS * 100),
  );

  it('are one for each rule alone, and two for all that meet the same calls', () => {
    const rules = {
      organization: [ipRule('o1', 'allow', '10.0.0.0/8')],
      group: [modelRule('g1', 'deny', 'sandbox-slow')],
      member: [providerRule('m1', 'deny', 'acme')],
      key: [modelRule('k1', 'allow', 'sandbox-*')],
    };
    expect(generated(worldOf(rules)).map(({ name }) => name)).toEqual([
      'o1 alone: allow_ip_cidrs of the organization',
      'g1 alone: deny_models of the group',
      'grp_1: all rules together, by model',
      'grp_1: all rules together, by address',
      'm1 alone: deny_providers of the member',
      'mem_1: all rules together, by model',
      'mem_1: all rules together, by address',
      'k1 alone: allow_models of the key',
      'key_1: all rules together, by model',
      'key_1: all rules together, by address',
    ]);
    const byModel = generated(worldOf(rules)).find(({ name }) => name.startsWith('key_1') && name.endsWith('by model'));
    expect(byModel?.requests.address).toEqual(['10.0.0.0']);
    expect(byModel?.expect.some(({ permit }) => permit === 'all')).toBe(true);
    expect(generated(worldOf({}))).toEqual([]);
  });

  it('of one key are its own, its owner’s and the organization’s', () => {
    const world = worldOf({ organization: [modelRule('o1', 'deny', 'a')], key: [modelRule('k1', 'deny', 'b')] });
    const stranger = {
      id: 'key_2',
      organizationId: 'org_1',
      projectId: null,
      memberId: 'mem_1',
      description: '',
      tags: [],
      rules: world.keys.get('key_1')?.rules ?? [],
    };
    const all = { ...world, keys: new Map([...world.keys, ['key_2', stranger]]) };
    expect(generated(all, stranger).map(({ name }) => name.split(':')[0])).toEqual(['o1 alone', 'k1 alone', 'key_2']);
  });

  /** A rule, and one that draws another border. */
  const moved: readonly (readonly [PolicyRule, PolicyRule])[] = [
    [ipRule('r', 'deny', '10.0.0.0/8'), ipRule('r', 'deny', '10.0.0.0/9')],
    [ipRule('r', 'allow', '192.0.2.0/24'), ipRule('r', 'allow', '192.0.2.0/23')],
    [ipRule('r', 'allow', '2001:db8::/32'), ipRule('r', 'allow', '2001:db8::/33')],
    [ipRule('r', 'deny', '192.0.2.1/32'), ipRule('r', 'deny', '192.0.2.0/31')],
    [modelRule('r', 'deny', 'gpt-5'), modelRule('r', 'deny', 'gpt-5*')],
    [modelRule('r', 'allow', 'another-provider/gpt-5'), modelRule('r', 'allow', 'gpt-5')],
    [modelRule('r', 'allow', 'claude-*'), modelRule('r', 'allow', 'claude*')],
    [modelRule('r', 'deny', 'openai/*'), modelRule('r', 'deny', 'openai*')],
    [providerRule('r', 'deny', 'acme'), providerRule('r', 'deny', 'custom:acme')],
    [providerRule('r', 'allow', 'custom'), providerRule('r', 'allow', 'custom:some-custom')],
    [pricingRule('r', 'allow', { maxInputPrice: '2.5' }), pricingRule('r', 'allow', { maxInputPrice: '2.500001' })],
    [pricingRule('r', 'deny', { maxOutputPrice: '0' }), pricingRule('r', 'deny', { maxOutputPrice: '0.000001' })],
    [
      pricingRule('r', 'allow', { pricingType: 'free' }),
      pricingRule('r', 'allow', { maxInputPrice: '0', maxOutputPrice: '0' }),
    ],
    [modelRule('r', 'deny', 'gpt-5'), { ...modelRule('r', 'deny', 'gpt-5'), mode: 'report' }],
  ];

  it.each(moved)('fail when the border moves: %j', (before, after) => {
    const [fixture, ...others] = generated(worldOf({ key: [before] }));
    const [changed] = generated(worldOf({ key: [after] }));
    if (fixture === undefined || changed === undefined || others.length > 0) throw new Error('not one fixture');
    const { keys } = changed.given;
    const outcome = run([{ ...fixture, given: { ...fixture.given, ...(keys === undefined ? {} : { keys }) } }]);
    expect(outcome).toMatchObject({ faults: [], failed: [fixture.name] });
  });
});

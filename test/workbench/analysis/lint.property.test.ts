/** Lint against brute force: each rule is taken away, and every cell asked of the policy as one whole call. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { canonicalAddress } from '../../../src/domain/address.ts';
import type { Mapping } from '../../../src/domain/model.ts';
import { readBundle } from '../../../src/policy/bundle.ts';
import { lintedMappings, lintWorld } from '../../../src/workbench/analysis/lint.ts';
import { createJudges } from '../../../src/workbench/world/judges.ts';
import {
  keySubjects,
  memberSubjects,
  type World,
  type WorldOrganization,
  type WorldSubject,
} from '../../../src/workbench/world/world.ts';
import { propertyRuns, propertyTimeout } from '../../policy/property-runs.ts';
import { edgesOf, mappingsIn, permits, worlds } from '../worlds.ts';

const RUNS = 30;
const bundle = readBundle();

const organizationSubject = ({ id, name, rules }: WorldOrganization): WorldSubject => ({
  scope: 'organization',
  id,
  name,
  rules,
});

/** Each subject with those outside it. */
const scopesOf = (world: World): WorldSubject[][] => [
  ...[...world.organizations.values()].map((organization) => [organizationSubject(organization)]),
  ...[...world.groups.values()].map(({ organizationId, id, name, rules }): WorldSubject[] => {
    const organization = world.organizations.get(organizationId);
    return [
      ...(organization === undefined ? [] : [organizationSubject(organization)]),
      { scope: 'group', id, name, rules },
    ];
  }),
  ...[...world.members.values()].map((member) => memberSubjects(world, member)),
  ...[...world.keys.values()].map((key) => keySubjects(world, key)),
];

function cells(
  mappings: readonly Mapping[],
  subjects: readonly WorldSubject[],
  addresses: readonly (string | null)[],
): string {
  return mappings
    .flatMap((mapping) => addresses.map((address) => (permits(subjects, mapping, address) ? '1' : '0')))
    .join('');
}

it(
  'says of exactly those rules that they decide nothing without which no cell changes',
  async () => {
    await fc.assert(
      fc.asyncProperty(worlds, async (world) => {
        const mappings = lintedMappings(mappingsIn(world));
        const judges = createJudges(bundle, mappings, 0);
        const { findings } = await lintWorld(world, judges);
        await judges.close();
        const idle = findings.filter(({ code }) => code === 'dead-rule' || code === 'shadowed-rule');
        const expected = scopesOf(world).flatMap((subjects) => {
          const own = subjects.at(-1);
          if (own === undefined) return [];
          const ranges = subjects.flatMap(({ rules }) =>
            rules.flatMap(({ ruleValue }) => ('ipCidrs' in ruleValue ? ruleValue.ipCidrs : [])),
          );
          const addresses = [
            ...new Set([null, '203.0.113.7', canonicalAddress('2001:db8:ffff::7'), ...ranges.flatMap(edgesOf)]),
          ];
          const whole = cells(mappings, subjects, addresses);
          return own.rules
            .filter(({ mode }) => mode === 'enforce')
            .filter(({ id }) => {
              const rules = own.rules.filter((rule) => rule.id !== id);
              return cells(mappings, [...subjects.slice(0, -1), { ...own, rules }], addresses) === whole;
            })
            .map(({ id }) => id);
        });
        expect(idle.flatMap(({ ruleIds }) => ruleIds).sort()).toEqual(expected.sort());
      }),
      propertyRuns(RUNS),
    );
  },
  propertyTimeout(RUNS),
);

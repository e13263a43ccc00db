import { Document, isPair, isScalar, visit } from 'yaml';
import { catalogOf } from '../../catalog/catalog.ts';
import { kindOf, type PolicyRule } from '../../domain/iam-rule.ts';
import { systemClock } from '../../domain/time.ts';
import type { Fixture, FixtureExpectation } from '../../generated/types.ts';
import type { Pdp } from '../../policy/pdp.ts';
import { readGiven } from '../fixtures/fixture-given.ts';
import {
  crossRequests,
  type FixtureRequest,
  judgeRequest,
  type Outcome,
  readAxes,
} from '../fixtures/fixture-requests.ts';
import type { SourceDocument } from '../fixtures/fixture-source.ts';
import { PLAIN_FACTS, type World } from '../world/world.ts';
import { type Boundary, boundariesOf, type KnownModels } from './generate-boundaries.ts';
import { holderId, mergeSlices, type RuleHolder, rulesAround, subjectsGiven } from './generate-given.ts';

/** Models, and addresses, that the rules of several scopes together are tried on. */
const MOST_TOGETHER = 300;

/** A fixture with requests. */
export type GeneratedFixture = Fixture & Required<Pick<Fixture, 'requests' | 'expect'>>;

/**
 * Fixtures at the borders that the rules of a holder draw, expecting what this policy decides: each rule alone, and where
 * several meet the same call, all of them together.
 */
export const generateFixtures = (world: World, pdp: Pdp, holder: RuleHolder): GeneratedFixture[] => [
  ...holder.rules.flatMap((rule) => alone(world, pdp, holder, rule)),
  ...together(world, pdp, holder),
];

const modelsFor = ({ catalog }: World, { organization }: RuleHolder): KnownModels => ({
  catalog,
  custom: organization.providers?.mappings ?? [],
});

function alone(world: World, pdp: Pdp, holder: RuleHolder, rule: PolicyRule): GeneratedFixture[] {
  const parts = boundariesOf(rule, modelsFor(world, holder));
  return parts.map((boundary, index) => {
    const part = parts.length === 1 ? '' : `, part ${index + 1} of ${parts.length}`;
    const name = `${rule.id} alone: ${rule.ruleType} of the ${holder.scope}${part}`;
    return expecting(pdp, draft(name, holder, [rule], boundary));
  });
}

function together(world: World, pdp: Pdp, holder: RuleHolder): GeneratedFixture[] {
  const rules = rulesAround(holder);
  if (rules.length < 2) return [];
  const first = rules.flatMap((rule) => boundariesOf(rule, modelsFor(world, holder)).slice(0, 1));
  const slice = mergeSlices(first);
  const names = slice.names.slice(0, MOST_TOGETHER);
  const addresses = [...new Set(first.flatMap((boundary) => boundary.addresses))].slice(0, MOST_TOGETHER);
  const title = `${holderId(holder)}: all rules together`;
  const of = (label: string, boundary: Pick<Boundary, 'names' | 'addresses'>): GeneratedFixture =>
    draft(`${title}, by ${label}`, holder, rules, { ...slice, ...boundary });

  const address = passing(pdp, of('address', { names: names.slice(0, 1), addresses }), rules, 'address');
  const byModel = of('model', { names, addresses: [address] });
  if (addresses.length < 2) return [expecting(pdp, byModel)];
  const model = passing(pdp, byModel, rules, 'model');
  return [expecting(pdp, byModel), expecting(pdp, of('address', { names: [model], addresses }))];
}

function draft(name: string, holder: RuleHolder, rules: readonly PolicyRule[], boundary: Boundary): GeneratedFixture {
  const { models, custom, names, addresses } = boundary;
  return {
    name,
    description: `Generated from the rules of the ${holder.scope} ${holder.name}.`,
    given: {
      catalog: { models, ...(Object.keys(custom).length === 0 ? {} : { custom }) },
      ...subjectsGiven(holder, rules),
    },
    requests: { model: [...names], address: [...addresses] },
    expect: [],
  };
}

interface Judged {
  readonly request: FixtureRequest;
  readonly outcome: Outcome;
}

/** Every request of a fixture with what the policy makes of it. */
export function judged(pdp: Pdp, fixture: GeneratedFixture): Judged[] {
  const place = { file: 'generated', line: 1, column: 1 };
  const document: SourceDocument = { value: fixture, open: () => [], placeOf: () => place };
  const given = readGiven(document, ['given'], fixture.given, () => catalogOf([], systemClock));
  const axes = readAxes(document, fixture.requests, given);
  return crossRequests(axes, given, PLAIN_FACTS).map((request) => ({
    request,
    outcome: judgeRequest(pdp, given, request),
  }));
}

/** The first address at which no IP rule is violated, or the first model that violates IP rules alone; else the first of all. */
function passing(pdp: Pdp, fixture: GeneratedFixture, rules: readonly PolicyRule[], axis: 'address' | 'model'): string {
  const matters = new Set(
    rules.filter(({ ruleType }) => (kindOf(ruleType) === 'ip_cidrs') === (axis === 'address')).map(({ id }) => id),
  );
  const all = judged(pdp, fixture);
  const passes = ({ request, outcome }: Judged): boolean =>
    request.candidates.some(({ id }) => !outcome.violations.get(id)?.some((rule) => matters.has(rule)));
  return (all.find(passes) ?? all[0])?.request.labels[axis] ?? 'unknown';
}

/** The fixture with its expectations: requests of one outcome are one entry. */
function expecting(pdp: Pdp, fixture: GeneratedFixture): GeneratedFixture {
  const all = judged(pdp, fixture);
  const axis = fixture.requests.address?.length === 1 ? 'model' : 'address';
  const groups = Map.groupBy(all, ({ request, outcome }) => JSON.stringify(expectation(request, outcome)));
  const expect = [...groups].flatMap(([, group]) =>
    group.slice(0, 1).map(({ request, outcome }) => ({
      ...(group.length === all.length ? {} : { [axis]: group.map((each) => each.request.labels[axis]) }),
      ...expectation(request, outcome),
    })),
  );
  return { ...fixture, expect };
}

function expectation(
  { candidates }: FixtureRequest,
  { outcome, permitted, reason, violations, shadow }: Outcome,
): FixtureExpectation {
  if (outcome === 'not_found' || outcome === 'unavailable') return { error: outcome };
  const candidateList = (ids: readonly string[]): string | string[] =>
    ids.length === candidates.length ? 'all' : ids.length === 0 ? 'none' : [...ids];
  const inShadow =
    shadow === undefined
      ? {}
      : {
          shadow: {
            permit: candidateList(shadow.permitted),
            ...(shadow.would_deny.length === 0 ? {} : { wouldDeny: shadow.would_deny }),
            ...(shadow.would_allow.length === 0 ? {} : { wouldAllow: shadow.would_allow }),
          },
        };
  if (reason !== undefined) {
    return { deny: `${reason.scope} ${reason.ruleType}`, rules: [...reason.ruleIds], ...inShadow };
  }
  const refused = Object.fromEntries([...violations].map(([id, rules]) => [id, [...rules]]));
  return {
    permit: candidateList(permitted),
    ...(violations.size === 0 ? {} : { violations: refused }),
    ...inShadow,
  };
}

/** Names above the prices of a mapping: given, catalog, custom, its id. */
const PRICES_DEPTH = 3;

/** Fixtures as the text of one YAML file; lists of plain values, and prices, stand in one line each. */
export function fixtureText(fixtures: readonly Fixture[], header: string): string {
  const documents = fixtures.map((fixture) => {
    const document = new Document(fixture, { aliasDuplicateObjects: false });
    visit(document, {
      Seq(_key, list) {
        if (list.items.every(isScalar)) list.flow = true;
      },
      Map(_key, map, path) {
        const { length } = path.filter(isPair);
        if (length > PRICES_DEPTH && map.items.every(({ value }) => isScalar(value))) map.flow = true;
      },
    });
    return document.toString({ lineWidth: 120, flowCollectionPadding: false });
  });
  return `${header.replaceAll(/^/gm, '# ')}\n${documents.join('---\n')}`;
}

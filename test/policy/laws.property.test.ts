import { deepStrictEqual } from 'node:assert/strict';
import fc from 'fast-check';
import { describe, it } from 'vitest';
import type { PolicyDecision } from '../../src/generated/types.ts';
import { allowContent, candidate, cidr, denyContent, modelEntry, policyCase, providerEntry } from './arbitraries.ts';
import type { OracleRequest, OracleRule, RuleContent } from './oracle.ts';
import { dataOf, decide, permitted } from './production.ts';
import { propertyRuns, propertyTimeout } from './property-runs.ts';

const RUNS = 2_000;

/** A law of the production path, held for random cases; false or a throw breaks it. */
function law<T>(name: string, cases: fc.Arbitrary<T>, holds: (value: T) => unknown): void {
  it(
    name,
    () =>
      fc.assert(
        fc.property(cases, (value) => holds(value) !== false),
        propertyRuns<[T]>(RUNS),
      ),
    propertyTimeout(RUNS),
  );
}

const isSubset = (part: readonly string[], whole: readonly string[]) => part.every((id) => whole.includes(id));

function pick<T>(list: readonly T[], n: number): T {
  const element = list[n % list.length];
  if (element === undefined) throw new Error('nothing to pick from');
  return element;
}

/** The case with other rules in each of its scopes. */
function withRules(request: OracleRequest, change: (rules: readonly OracleRule[], scope: number) => OracleRule[]) {
  return {
    ...request,
    subjects: request.subjects.map((subject, n) => ({ ...subject, rules: change(subject.rules, n) })),
  };
}

/** A case before and after one of its scopes gets another rule in mode `enforce`. */
const addition = (content: fc.Arbitrary<RuleContent>) =>
  fc.record({ request: policyCase, n: fc.nat(4), content }).map(({ request, n, content }) => {
    const chosen = n % request.subjects.length;
    const rule: OracleRule = { ...content, mode: 'enforce', id: 'rule_added' };
    const added = withRules(request, (rules, scope) => (scope === chosen ? [...rules, rule] : [...rules]));
    const types = pick(request.subjects, chosen).rules.flatMap(({ ruleType, mode }) =>
      mode === 'enforce' ? ruleType : [],
    );
    return { request, added, isFirstOfItsKind: !types.includes(content.ruleType) };
  });

describe('one more rule', () => {
  law('of a deny kind never adds access', addition(denyContent), ({ request, added }) =>
    isSubset(permitted(added), permitted(request)),
  );

  law(
    'of an allow kind that its scope does not have never adds access',
    addition(allowContent).filter(({ isFirstOfItsKind }) => isFirstOfItsKind),
    ({ request, added }) => isSubset(permitted(added), permitted(request)),
  );

  law(
    'of an allow kind that its scope has never removes access',
    addition(allowContent).filter(({ isFirstOfItsKind }) => !isFirstOfItsKind),
    ({ request, added }) => isSubset(permitted(request), permitted(added)),
  );
});

const newEntries = fc.record({ model: modelEntry, provider: providerEntry, ipCidr: cidr });
type NewEntries = typeof newEntries extends fc.Arbitrary<infer Entries> ? Entries : never;

/** Adds an entry to an enforced allow list; other rules stay as they are. */
function longer(rule: OracleRule, { model, provider, ipCidr }: NewEntries): OracleRule {
  if (rule.mode === 'report') return rule;
  if (rule.ruleType === 'allow_models') return { ...rule, ruleValue: { models: [...rule.ruleValue.models, model] } };
  if (rule.ruleType === 'allow_providers') {
    return { ...rule, ruleValue: { providers: [...rule.ruleValue.providers, provider] } };
  }
  if (rule.ruleType === 'allow_ip_cidrs')
    return { ...rule, ruleValue: { ipCidrs: [...rule.ruleValue.ipCidrs, ipCidr] } };
  return rule;
}

describe('the lists of a rule', () => {
  law(
    'may grow in an allow rule without removing access',
    fc.record({ request: policyCase, entries: newEntries, n: fc.nat() }),
    ({ request, entries, n }) => {
      const grown = withRules(request, (rules) =>
        rules.map((rule, at) => (at === n % rules.length ? longer(rule, entries) : rule)),
      );
      return isSubset(permitted(request), permitted(grown));
    },
  );
});

/** A case and the same with the rules of every scope in another order. */
const reordered = policyCase.chain((request) =>
  fc
    .tuple(...request.subjects.map(({ rules }) => fc.shuffledSubarray([...rules], { minLength: rules.length })))
    .map((orders) => ({ request, other: withRules(request, (rules, scope) => orders[scope] ?? [...rules]) })),
);

/** The rule with the entries of its list backwards, and the first of them twice. */
function backwards(rule: OracleRule): OracleRule {
  const turn = (entries: readonly string[]) => [pick(entries, 0), ...entries.toReversed()];
  switch (rule.ruleType) {
    case 'allow_models':
    case 'deny_models':
      return { ...rule, ruleValue: { models: turn(rule.ruleValue.models) } };
    case 'allow_providers':
    case 'deny_providers':
      return { ...rule, ruleValue: { providers: turn(rule.ruleValue.providers) } };
    case 'allow_ip_cidrs':
    case 'deny_ip_cidrs':
      return { ...rule, ruleValue: { ipCidrs: turn(rule.ruleValue.ipCidrs) } };
    default:
      return rule;
  }
}

describe('the data document', () => {
  law('is the same text whatever the order of the rules', reordered, ({ request, other }) =>
    deepStrictEqual(dataOf(other.subjects), dataOf(request.subjects)),
  );

  law('is the same text whatever the order of entries, and with repeats of them', policyCase, (request) => {
    const other = withRules(request, (rules) => rules.map(backwards));
    deepStrictEqual(dataOf(other.subjects), dataOf(request.subjects));
  });

  law('is the same text whatever the order of the subjects', policyCase, ({ subjects }) =>
    deepStrictEqual(dataOf(subjects.toReversed()), dataOf(subjects)),
  );
});

/** What is decided about one candidate, by which rules; the entries by which they matched left out. */
function verdictOn(id: string, { permitted, violations }: PolicyDecision) {
  const about = violations.filter((violation) => violation.candidate === undefined || violation.candidate === id);
  return { permitted: permitted.includes(id), by: about.map(({ values, ...rest }) => JSON.stringify(rest)).sort() };
}

describe('the names of a candidate', () => {
  law(
    'are interchangeable in the rules: the decision about it stays the same',
    fc.record({
      request: policyCase,
      effect: fc.constantFrom('allow_models' as const, 'deny_models' as const),
      n: fc.nat(),
    }),
    ({ request, effect, n }) => {
      const { id, names } = pick(request.candidates, n);
      const naming = (name: string): OracleRule => ({
        ruleType: effect,
        ruleValue: { models: [name] },
        mode: 'enforce',
        id: 'rule_added',
      });
      const renamed = (rule: OracleRule): OracleRule => {
        if (rule.ruleType !== 'allow_models' && rule.ruleType !== 'deny_models') return rule;
        const models = rule.ruleValue.models.map((entry, at) => (names.includes(entry) ? pick(names, n + at) : entry));
        return { ...rule, ruleValue: { models } };
      };
      const before = withRules(request, (rules) => [...rules, naming(pick(names, 0))]);
      const after = withRules(before, (rules) => rules.map(renamed));
      deepStrictEqual(verdictOn(id, decide(after)), verdictOn(id, decide(before)));
    },
  );
});

describe('scopes', () => {
  law('permit together what each permits alone: a key never exceeds its member', policyCase, (request) => {
    const alone = request.subjects.map((subject) => permitted({ ...request, subjects: [subject] }));
    const byAll = request.candidates.map(({ id }) => id).filter((id) => alone.every((ids) => ids.includes(id)));
    deepStrictEqual(permitted(request), byAll.sort());
  });

  law('without rules let everything through', policyCase, (request) => {
    const all = request.candidates.map(({ id }) => id).sort();
    deepStrictEqual(decide(withRules(request, () => [])), { permitted: all, violations: [] });
  });

  law(
    'without rules change nothing for others',
    policyCase.filter(({ subjects }) => subjects.length > 1),
    (request) => {
      const [first, ...others] = request.subjects;
      const emptied = withRules(request, (rules, scope) => (scope === 0 ? [] : [...rules]));
      deepStrictEqual(first && decide(emptied), decide({ ...request, subjects: others }));
    },
  );
});

describe('candidates', () => {
  law(
    'are judged alone: one more never changes what is decided about the others',
    fc.record({ request: policyCase, other: candidate }),
    ({ request, other }) => {
      const others = request.candidates.filter(({ id }) => id !== other.id);
      if (others.length === 0) return;
      const few = decide({ ...request, candidates: others });
      const more = decide({ ...request, candidates: [other, ...others] });
      deepStrictEqual(
        others.map(({ id }) => verdictOn(id, more)),
        others.map(({ id }) => verdictOn(id, few)),
      );
    },
  );

  law('are permitted by the entrypoint `permitted` exactly as by `decision`', policyCase, (request) =>
    deepStrictEqual(permitted(request), decide(request).permitted),
  );
});

describe('report rules', () => {
  law('never change the answer', policyCase, (request) => {
    const { shadow, ...answer } = decide(request);
    const without = withRules(request, (rules) => rules.filter(({ mode }) => mode === 'enforce'));
    deepStrictEqual(answer, decide(without));
  });

  law('show in the shadow what enforcing them would permit', policyCase, (request) => {
    const enforcing = withRules(request, (rules) => rules.map((rule) => ({ ...rule, mode: 'enforce' })));
    const { permitted, shadow } = decide(request);
    deepStrictEqual(shadow?.permitted ?? permitted, decide(enforcing).permitted);
  });
});

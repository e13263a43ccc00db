/** Explanations against brute force: every set of rules is taken away, every other mapping is tried. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { comparePrice, type Mapping } from '../../../src/domain/model.ts';
import { createPdp } from '../../../src/policy/pdp.ts';
import { explain, readCall } from '../../../src/workbench/analysis/explain.ts';
import { keySubjects, type WorldSubject } from '../../../src/workbench/world/world.ts';
import { propertyRuns, propertyTimeout } from '../../policy/property-runs.ts';
import { canCall, catalog, decide, mappingsIn, permits, worlds } from '../worlds.ts';

const NOW = Date.UTC(2026, 10, 25, 12);

const RUNS = 60;
const pdp = createPdp();
const calls = fc.record({
  model: fc.constantFrom('gpt-5', 'openai/gpt-5-mini', 'azure/gpt-5', 'opus', '42', 'watch'),
  address: fc.constantFrom(null, '10.1.2.3', '192.0.2.128', '2001:db8::1'),
});

const without = (subjects: readonly WorldSubject[], ids: ReadonlySet<string>): WorldSubject[] =>
  subjects.map((subject) => ({ ...subject, rules: subject.rules.filter(({ id }) => !ids.has(id)) }));

const idsOf = (mappings: readonly Mapping[]): string[] => mappings.map(({ id }) => id).sort();

function subsets(items: readonly string[], size: number): string[][] {
  if (size === 0) return [[]];
  return items.flatMap((first, index) => subsets(items.slice(index + 1), size - 1).map((rest) => [first, ...rest]));
}

it(
  'an explanation names the smallest sets of rules without which the outcome is the other one',
  () => {
    fc.assert(
      fc.property(worlds, calls, (world, { model, address }) => {
        const [key] = world.keys.values();
        if (key === undefined) throw new Error('no key');
        const subjects = keySubjects(world, key);
        const call = readCall(world, key, { model, address }, NOW);
        const explanation = explain(pdp, world, key, call, 'test');
        const outcome = (scopes: readonly WorldSubject[]) =>
          decide(scopes, call.candidates, address, call.action).permitted.length > 0;
        const meant = mappingsIn(world).filter(({ id, names }) => id === model || names.includes(model));
        const isCallable = (mapping: Mapping): boolean => canCall(world, key.projectId, mapping);
        const isFound = meant.some(isCallable);
        expect(explanation.outcome).toBe(!isFound ? 'not_found' : outcome(subjects) ? 'permit' : 'deny');
        expect(explanation.withoutCredential).toEqual(
          expect.arrayContaining(idsOf(meant.filter((each) => !isCallable(each)))),
        );
        expect(explanation.candidates.toSorted()).toEqual(
          isFound ? idsOf(meant.filter(isCallable)) : explanation.withoutCredential.toSorted(),
        );
        const ids = subjects.flatMap(({ rules }) => rules.map(({ id }) => id));
        const { sets } = explanation.flips;
        const largest = sets[0]?.length ?? 3;
        for (let size = 1; size <= largest; size += 1) {
          const flipping = subsets(ids, size).filter(
            (set) => outcome(without(subjects, new Set(set))) !== outcome(subjects),
          );
          const sorted = flipping.map((set) => set.toSorted().join()).sort();
          if (size < largest || sets.length === 0) expect(sorted).toEqual([]);
          // Denied, one set for each candidate that needs the fewest; permitted, all of them.
          else expect(sorted).toEqual(expect.arrayContaining(sets.map((set) => set.join())));
        }
      }),
      propertyRuns(RUNS),
    );
  },
  propertyTimeout(RUNS),
);

it(
  'the alternative is the nearest and then cheapest that is permitted',
  () => {
    fc.assert(
      fc.property(worlds, calls, (world, { model, address }) => {
        const [key] = world.keys.values();
        if (key === undefined) throw new Error('no key');
        const subjects = keySubjects(world, key);
        const call = readCall(world, key, { model, address }, NOW);
        const { outcome, alternative } = explain(pdp, world, key, call, 'test');
        const [asked] = call.candidates;
        const families = new Map(catalog.models().map(({ id, family }) => [id, family]));
        const tiers = [
          ({ custom, modelId }: Mapping) => !custom && asked?.custom === false && modelId === asked.modelId,
          ({ custom, modelId }: Mapping) =>
            !custom && asked?.custom === false && families.get(modelId) === families.get(asked.modelId),
          () => true,
        ];
        const near = mappingsIn(world)
          .filter((mapping) => canCall(world, key.projectId, mapping))
          .filter(({ outputModalities }) => outputModalities[0] === asked?.outputModalities[0])
          .filter((mapping) => permits(subjects, mapping, address))
          .sort(comparePrice);
        const best = tiers.flatMap((tier) => near.filter(tier))[0];
        expect(alternative === null ? null : `${alternative.provider}/${alternative.model}`).toBe(
          outcome === 'permit' ? null : (best?.id ?? null),
        );
      }),
      propertyRuns(RUNS),
    );
  },
  propertyTimeout(RUNS),
);

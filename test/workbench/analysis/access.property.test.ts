/** `access` and `diff` against brute force: each cell asked of the policy as one whole call. */
import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import type { Mapping } from '../../../src/domain/model.ts';
import type { AccessDiff } from '../../../src/generated/types.ts';
import { getOrMake } from '../../../src/lib/collections.ts';
import { readBundle } from '../../../src/policy/bundle.ts';
import { createPdp } from '../../../src/policy/pdp.ts';
import { accessOverview, accessReport } from '../../../src/workbench/analysis/access.ts';
import { accessDiff } from '../../../src/workbench/analysis/diff.ts';
import { organizationSets, type ReportOptions } from '../../../src/workbench/world/candidates.ts';
import { type Holder, holdersOf } from '../../../src/workbench/world/holders.ts';
import { createJudges, type Judges } from '../../../src/workbench/world/judges.ts';
import type { World, WorldRule } from '../../../src/workbench/world/world.ts';
import { propertyRuns, propertyTimeout } from '../../policy/property-runs.ts';
import { addressesOf, canCall, lies, mappingsIn, permits, worlds } from '../worlds.ts';

const RUNS = 40;
const bundle = readBundle();
const pdp = createPdp();
const SHOW_ALL: ReportOptions = { withoutCredential: true };
const SHOWN = [{ withoutCredential: false }, SHOW_ALL];

/** Judges of some mappings; few sets of them occur. */
const known = new Map<string, Judges>();
const judgesOf = (mappings: readonly Mapping[]): Judges =>
  getOrMake(known, mappings.map(({ id, custom }) => `${id} ${custom}`).join(), () => createJudges(bundle, mappings, 0));
afterAll(() => Promise.all([...known.values()].map((judges) => judges.close())));

/** The one part of worlds that hold the same organization. */
function partOf(...some: readonly World[]): readonly Mapping[] {
  const [part, ...others] = organizationSets(some);
  if (part === undefined || others.length > 0) throw new Error(`${others.length} parts`);
  return part.mappings;
}

/** A member has none: they may own keys of any project. */
const projectOf = ({ keys }: World, { id }: Holder): string | null => keys.get(id)?.projectId ?? null;

const cellsOf = (holder: Holder, mappings: readonly Mapping[], addresses: readonly (string | null)[]): string[] =>
  mappings.flatMap((mapping) =>
    addresses
      .filter((address) => permits(holder.subjects, mapping, address))
      .map((address) => `${holder.id} ${mapping.id} ${address}`),
  );

it.each(SHOWN)(
  'an access table holds exactly the cells that calls are permitted: %j',
  (shown) => {
    fc.assert(
      fc.property(worlds, (world) => {
        const addresses = addressesOf(world);
        for (const holder of holdersOf(world)) {
          const report = accessReport(pdp, world, holder, 'test', shown);
          const open = report.addresses.filter(({ permitted }) => permitted).flatMap((each) => each.addresses);
          const cells = report.reached.flatMap(({ provider, model }) =>
            addresses
              .filter((address) => lies(address, open))
              .map((each) => `${holder.id} ${provider}/${model} ${each}`),
          );
          const isCallable = (mapping: Mapping): boolean => canCall(world, projectOf(world, holder), mapping);
          const all = mappingsIn(world);
          const looked = shown.withoutCredential ? all : all.filter(isCallable);
          expect(cells.toSorted()).toEqual(cellsOf(holder, looked, addresses).toSorted());
          const listed = [...report.reached, ...report.denied];
          expect(listed.map(({ provider, model, credential }) => `${provider}/${model} ${credential}`).sort()).toEqual(
            looked.map((mapping) => `${mapping.id} ${isCallable(mapping)}`).sort(),
          );
          const rest = all.filter((mapping) => !isCallable(mapping));
          const permitted = rest.filter((mapping) => cellsOf(holder, [mapping], addresses).length > 0);
          expect(report.withoutCredential).toBe(permitted.length);
        }
      }),
      propertyRuns(RUNS),
    );
  },
  propertyTimeout(RUNS),
);

it.each(SHOWN)(
  'the overview of all says the same as the table of each: %j',
  async (shown) => {
    await fc.assert(
      fc.asyncProperty(worlds, async (world) => {
        const { holders } = await accessOverview(judgesOf(partOf(world)), world, shown);
        for (const [index, holder] of holdersOf(world).entries()) {
          const report = accessReport(pdp, world, holder, 'test', shown);
          const reached = (wanted: boolean): string[] =>
            report.reached
              .filter(({ credential }) => credential === wanted)
              .map(({ provider, model }) => `${provider}/${model}`);
          const overview = holders[index];
          expect(overview?.mappings).toEqual(reached(true));
          expect(overview?.withoutCredential).toBe(report.withoutCredential);
          expect(overview?.mappingsWithoutCredential).toEqual(shown.withoutCredential ? reached(false) : undefined);
          const open = report.addresses.filter(({ permitted }) => permitted).flatMap(({ addresses }) => addresses);
          for (const address of addressesOf(world)) {
            expect(lies(address, overview?.addresses ?? [])).toBe(lies(address, open));
          }
        }
      }),
      propertyRuns(RUNS),
    );
  },
  propertyTimeout(RUNS),
);

/** The flips as cells, each with the rules that are said to be responsible. */
const flippedCells = ({ flips }: AccessDiff, addresses: readonly (string | null)[]): string[] =>
  flips.flatMap(({ change, holders, mappings: ids, addresses: texts }) =>
    holders.flatMap(({ id }) =>
      ids.flatMap((mapping) =>
        addresses.filter((address) => lies(address, texts)).map((address) => `${change} ${id} ${mapping} ${address}`),
      ),
    ),
  );

/** What both worlds know, the second before the first, where it can be called on one side or is to be shown. */
function lookedAt(before: World, after: World, holder: Holder, { withoutCredential }: ReportOptions): Mapping[] {
  const byId = new Map([...mappingsIn(before), ...mappingsIn(after)].map((mapping) => [mapping.id, mapping]));
  return [...byId.values()].filter(
    (mapping) =>
      withoutCredential || [before, after].some((world) => canCall(world, projectOf(world, holder), mapping)),
  );
}

it.each(SHOWN)(
  'a difference holds exactly the cells that flip, each once: %j',
  async (shown) => {
    await fc.assert(
      fc.asyncProperty(worlds, worlds, async (before, after) => {
        const addresses = addressesOf(before, after);
        const cellsIn = (world: World): Set<string> =>
          new Set(
            holdersOf(world).flatMap((holder) => cellsOf(holder, lookedAt(before, after, holder, shown), addresses)),
          );
        const [was, is] = [cellsIn(before), cellsIn(after)];
        const expected = [
          ...[...is.difference(was)].map((cell) => `gained ${cell}`),
          ...[...was.difference(is)].map((cell) => `lost ${cell}`),
        ];
        const diff = await accessDiff(judgesOf(partOf(before, after)), before, after, shown);
        expect(flippedCells(diff, addresses).toSorted()).toEqual(expected.toSorted());
        for (const { credential, holders, mappings } of diff.flips) {
          for (const holder of holdersOf(after).filter(({ id }) => holders.some((each) => each.id === id))) {
            const callable = lookedAt(before, after, holder, { withoutCredential: false }).map(({ id }) => id);
            expect(mappings.filter((id) => callable.includes(id))).toEqual(credential ? mappings : []);
          }
        }
      }),
      propertyRuns(RUNS),
    );
  },
  propertyTimeout(RUNS),
);

/** The world with the rules named, and who is in which group, put back to what they were before. */
function reverted(before: World, after: World, ids: ReadonlySet<string>, holderId: string): World {
  const mixed = (is: readonly WorldRule[] = [], was: readonly WorldRule[] = []): readonly WorldRule[] => [
    ...is.filter((rule) => !ids.has(rule.id)),
    ...was.filter((rule) => ids.has(rule.id)),
  ];
  const restore = <T extends { readonly rules: readonly WorldRule[] }>(
    all: ReadonlyMap<string, T>,
    old: ReadonlyMap<string, T>,
  ) => new Map([...all].map(([id, subject]) => [id, { ...subject, rules: mixed(subject.rules, old.get(id)?.rules) }]));
  /** The rules of a group that bind the holder. */
  const binding = ({ groups, keys }: World, groupId: string): readonly WorldRule[] => {
    const group = groups.get(groupId);
    const isIn = [holderId, keys.get(holderId)?.memberId ?? ''].some((id) => group?.holderIds.has(id));
    return isIn ? (group?.rules ?? []) : [];
  };
  return {
    ...after,
    organizations: restore(after.organizations, before.organizations),
    groups: new Map(
      [...after.groups].map(([id, group]) => [
        id,
        {
          ...group,
          holderIds: new Set([...group.holderIds, ...(before.groups.get(id)?.holderIds ?? [])]),
          rules: mixed(binding(after, id), binding(before, id)),
        },
      ]),
    ),
    members: restore(after.members, before.members),
    keys: restore(after.keys, before.keys),
  };
}

it(
  'with the rules responsible as they were, a flipped cell is as it was',
  async () => {
    await fc.assert(
      fc.asyncProperty(worlds, worlds, async (before, after) => {
        const addresses = addressesOf(before, after);
        const mappings = partOf(before, after);
        const { flips } = await accessDiff(judgesOf(mappings), before, after, SHOW_ALL);
        for (const { change, holders, mappings: ids, addresses: texts, rules } of flips) {
          expect(rules.length).toBeGreaterThan(0);
          const without = reverted(before, after, new Set(rules.map(({ id }) => id)), holders[0]?.id ?? '');
          const [address] = addresses.filter((each) => lies(each, texts));
          const mapping = mappings.find(({ id }) => id === ids[0]);
          const holder = holdersOf(without).find(({ id }) => id === holders[0]?.id);
          if (address === undefined || mapping === undefined || holder === undefined) throw new Error('no such cell');
          expect(permits(holder.subjects, mapping, address)).toBe(change === 'lost');
        }
      }),
      propertyRuns(RUNS),
    );
  },
  propertyTimeout(RUNS),
);

/** `access` and `diff` against brute force: each cell asked of the policy as one whole call. */
import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import type { AccessDiff } from '../../src/generated/types.ts';
import { readBundle } from '../../src/policy/bundle.ts';
import { createPdp } from '../../src/policy/pdp.ts';
import { accessOverview, accessReport } from '../../src/workbench/access.ts';
import { accessDiff } from '../../src/workbench/diff.ts';
import { type Holder, holdersOf } from '../../src/workbench/holders.ts';
import { createJudges } from '../../src/workbench/judges.ts';
import { activeMappings, type World, type WorldRule } from '../../src/workbench/world.ts';
import { parseAddress } from '../policy/oracle-addresses.ts';
import { propertyRuns, propertyTimeout } from '../policy/property-runs.ts';
import { catalog, edgesOf, permits, worlds } from './worlds.ts';

const RUNS = 40;
const mappings = activeMappings({ catalog });
const judges = createJudges(readBundle(), mappings, 0);
const pdp = createPdp();
afterAll(() => judges.close());

/** Addresses at, just inside and just outside the ends of every range of the worlds, and the unknown one. */
function addressesOf(...some: readonly World[]): (string | null)[] {
  const rules = some.flatMap(({ organizations, members, keys }) =>
    [...organizations.values(), ...members.values(), ...keys.values()].flatMap((subject) => subject.rules),
  );
  const ranges = rules.flatMap(({ ruleValue }) => ('ipCidrs' in ruleValue ? ruleValue.ipCidrs : []));
  return [...new Set([null, '203.0.113.7', '2001:db8:ffff::7', ...ranges.flatMap(edgesOf)])];
}

/** Whether an address lies in a set of ranges as they are printed. */
function lies(address: string | null, texts: readonly string[]): boolean {
  if (address === null) return texts.includes('unknown');
  const { bits, value } = parseAddress(address);
  return texts.some((text) => {
    if (text === 'unknown') return false;
    const [from = '', to] = text.split('-');
    const [network = '', prefix] = from.split('/');
    const first = parseAddress(network);
    const last = to === undefined ? first.value + (1n << BigInt(bits - Number(prefix))) - 1n : parseAddress(to).value;
    return first.bits === bits && first.value <= value && value <= last;
  });
}

const cellsOf = (holder: Holder, addresses: readonly (string | null)[]): string[] =>
  mappings.flatMap((mapping) =>
    addresses
      .filter((address) => permits(holder.subjects, mapping, address))
      .map((address) => `${holder.id} ${mapping.id} ${address}`),
  );

it(
  'an access table holds exactly the cells that calls are permitted',
  () => {
    fc.assert(
      fc.property(worlds, (world) => {
        const addresses = addressesOf(world);
        for (const holder of holdersOf(world)) {
          const report = accessReport(pdp, mappings, holder, 'test');
          const open = report.addresses.filter(({ permitted }) => permitted).flatMap((each) => each.addresses);
          const cells = report.reached.flatMap(({ provider, model }) =>
            addresses
              .filter((address) => lies(address, open))
              .map((each) => `${holder.id} ${provider}/${model} ${each}`),
          );
          expect(cells.toSorted()).toEqual(cellsOf(holder, addresses).toSorted());
          expect(report.reached.length + report.denied.length).toBe(mappings.length);
        }
      }),
      propertyRuns(RUNS),
    );
  },
  propertyTimeout(RUNS),
);

it(
  'the overview of all says the same as the table of each',
  async () => {
    await fc.assert(
      fc.asyncProperty(worlds, async (world) => {
        const { holders } = await accessOverview(judges, holdersOf(world));
        for (const [index, holder] of holdersOf(world).entries()) {
          const report = accessReport(pdp, mappings, holder, 'test');
          const overview = holders[index];
          expect(overview?.mappings).toEqual(report.reached.map(({ provider, model }) => `${provider}/${model}`));
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

it(
  'a difference holds exactly the cells that flip, each once',
  async () => {
    await fc.assert(
      fc.asyncProperty(worlds, worlds, async (before, after) => {
        const addresses = addressesOf(before, after);
        const was = new Set(holdersOf(before).flatMap((holder) => cellsOf(holder, addresses)));
        const is = new Set(holdersOf(after).flatMap((holder) => cellsOf(holder, addresses)));
        const expected = [
          ...[...is.difference(was)].map((cell) => `gained ${cell}`),
          ...[...was.difference(is)].map((cell) => `lost ${cell}`),
        ];
        const diff = await accessDiff(judges, before, after);
        expect(flippedCells(diff, addresses).toSorted()).toEqual(expected.toSorted());
      }),
      propertyRuns(RUNS),
    );
  },
  propertyTimeout(RUNS),
);

/** The world with the rules named put back to what they were before. */
function reverted(before: World, after: World, ids: ReadonlySet<string>): World {
  const restore = <T extends { readonly rules: readonly WorldRule[] }>(
    all: ReadonlyMap<string, T>,
    old: ReadonlyMap<string, T>,
  ) =>
    new Map(
      [...all].map(([id, subject]) => [
        id,
        {
          ...subject,
          rules: [
            ...subject.rules.filter((rule) => !ids.has(rule.id)),
            ...(old.get(id)?.rules ?? []).filter((rule) => ids.has(rule.id)),
          ],
        },
      ]),
    );
  return {
    ...after,
    organizations: restore(after.organizations, before.organizations),
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
        const { flips } = await accessDiff(judges, before, after);
        for (const { change, holders, mappings: ids, addresses: texts, rules } of flips) {
          expect(rules.length).toBeGreaterThan(0);
          const without = reverted(before, after, new Set(rules.map(({ id }) => id)));
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

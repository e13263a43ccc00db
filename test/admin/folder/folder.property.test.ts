/** Random rules and folders: what a plan says is what its apply does, of rules and, by brute force, of access. */
import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import { applyFolder, planView } from '../../../src/admin/folder/apply-folder.ts';
import { readLiveFolder } from '../../../src/admin/folder/live-folder.ts';
import { type FolderPlan, readFolderPlan } from '../../../src/admin/folder/plan-folder.ts';
import { createRule, listRules } from '../../../src/admin/rules/iam-rules.ts';
import type { RuleOwner } from '../../../src/admin/rules/rule-owner.ts';
import { readRule } from '../../../src/domain/rule-content.ts';
import type { FolderOwner, IamRule, PolicyFolder } from '../../../src/generated/types.ts';
import { readBundle } from '../../../src/policy/bundle.ts';
import type { Database } from '../../../src/store/db/database.ts';
import { changeGroupHolders, insertGroup } from '../../../src/store/tenants/group-records.ts';
import { accessDiff } from '../../../src/workbench/analysis/diff.ts';
import { replacementsOf, withRule } from '../../../src/workbench/analysis/drafts.ts';
import { FixtureSources } from '../../../src/workbench/fixtures/fixture-source.ts';
import { folderFiles, readPolicyFolder } from '../../../src/workbench/folder/policy-folder.ts';
import { organizationSets } from '../../../src/workbench/world/candidates.ts';
import { holdersOf } from '../../../src/workbench/world/holders.ts';
import { createJudges } from '../../../src/workbench/world/judges.ts';
import { readWorld, type World } from '../../../src/workbench/world/world.ts';
import { allowContent, denyContent } from '../../policy/arbitraries.ts';
import { propertyRuns, propertyTimeout } from '../../policy/property-runs.ts';
import { folderOf } from '../../workbench/fixture-folder.ts';
import { addressesOf, catalog, lies, permits } from '../../workbench/worlds.ts';
import { ID, owner, seededDatabase, startMs } from '../tenants.ts';

const RUNS = 30;
const write = { now: startMs, catalog, trustedProxies: [] };
const installation = { catalog, servedProviders: new Set(['openai']) };

const GROUP = `grp_${'1'.repeat(32)}`;

/** With a group that the developer is in. */
function seeded(): Database {
  const db = seededDatabase();
  insertGroup(db, { id: GROUP, organizationId: ID.organization, name: 'contractors', description: null }, startMs);
  changeGroupHolders(db, ID.organization, GROUP, { added: [ID.developer], removed: [] });
  return db;
}

/** Everyone who may have rules, as a folder names them. */
const OWNERS: readonly (readonly [
  part: 'groups' | 'members' | 'keys' | 'organization',
  name: string,
  owner: RuleOwner,
])[] = [
  ['organization', '', { kind: 'organization' }],
  ['members', 'owner@example.com', { kind: 'member', member: ID.owner }],
  ['members', 'developer@example.com', { kind: 'member', member: ID.developer }],
  ['groups', 'contractors', { kind: 'group', group: GROUP }],
  ['keys', "The owner's", { kind: 'key', key: ID.ownerKey }],
  ['keys', "The developer's", { kind: 'key', key: ID.developerKey }],
];

const rule = fc
  .record({
    content: fc.oneof(allowContent, denyContent),
    mode: fc.constantFrom('enforce' as const, 'enforce' as const, 'report' as const),
    status: fc.constantFrom('active' as const, 'active' as const, 'active' as const, 'inactive' as const),
    description: fc.constantFrom(null, null, 'a', 'No paid models!'),
  })
  .map(({ content, ...rest }) => ({ ...content, ...rest }));
/** Few rules, so that equal ones come in what is live and in folders. */
const fewRules = fc.array(rule, { minLength: 1, maxLength: 5 });
const NAMES = ['a', 'b', 'No.paid', 'deny-models'];

/** Which of a few rules an owner has by which name; null: the folder does not name the owner. */
const choice = fc.option(fc.dictionary(fc.constantFrom(...NAMES), fc.nat(4), { maxKeys: 3 }), { freq: 3 });
const folders = fc.tuple(...OWNERS.map(() => choice));
const live = fc.array(fc.tuple(fc.nat(5), fc.nat(4)), { maxLength: 6 });

function folderWith(rules: readonly object[], choices: readonly (Readonly<Record<string, number>> | null)[]) {
  const folder: PolicyFolder = {};
  for (const [index, [part, name]] of OWNERS.entries()) {
    const chosen = choices[index];
    if (chosen === null || chosen === undefined) continue;
    const named = Object.entries(chosen).map(([each, at]): [string, object] => [each, rules[at % rules.length] ?? {}]);
    const stated: FolderOwner = { rules: Object.fromEntries(named) };
    if (part === 'organization') folder.organization = stated;
    else folder[part] = { ...folder[part], [name]: stated };
  }
  return folder;
}

const statedOf = (folder: PolicyFolder, index: number): FolderOwner['rules'] => {
  const [part = 'organization', name = ''] = OWNERS[index] ?? [];
  return (part === 'organization' ? folder.organization : folder[part]?.[name])?.rules ?? {};
};

const rulesOf = (db: Database, of: RuleOwner): IamRule[] => listRules(db, owner, of, { limit: 200 }).rules;
const planOf = (db: Database, folder: PolicyFolder, prune = false): FolderPlan =>
  readFolderPlan(db, owner, folder, { prune }, write);
const worldOf = (db: Database): World => readWorld(db, installation, ID.organization);

/** What a rule says, as it is written. */
const wording = ({ ruleType, ruleValue, status, mode, description }: IamRule) => ({
  ruleType,
  ruleValue,
  status,
  mode,
  description,
});

const judges = createJudges(readBundle(), mappings(worldOf(seeded())), 0);
afterAll(() => judges.close());

function mappings(world: World) {
  const [part, ...others] = organizationSets([world]);
  if (part === undefined || others.length > 0) throw new Error('one organization');
  return part.mappings;
}

/** `change holder mapping address` of each cell that flips, asked one by one, but of holders whom the line of their owner covers. */
function flipsByForce(before: World, after: World): string[] {
  const addresses = addressesOf(before, after);
  const was = new Map(holdersOf(before).map((holder) => [holder.id, holder.subjects]));
  const shown = new Set(
    [...holdersOf(before), ...holdersOf(after)].flatMap(({ id, isCovered }) => (isCovered ? [] : id)),
  );
  return holdersOf(after).flatMap(({ id, subjects }) =>
    (shown.has(id) ? judges.mappings : []).flatMap((mapping) =>
      addresses.flatMap((address) => {
        const [old, now] = [permits(was.get(id) ?? [], mapping, address), permits(subjects, mapping, address)];
        return old === now ? [] : `${now ? 'gained' : 'lost'} ${id} ${mapping.id} ${address}`;
      }),
    ),
  );
}

it('an apply does what the plan said, and makes the rules what the folder states', {
  timeout: propertyTimeout(RUNS),
}, async () => {
  await fc.assert(
    fc.asyncProperty(fewRules, live, folders, folders, fc.boolean(), async (rules, stored, first, second, prune) => {
      const db = seeded();
      for (const [at, which] of stored) {
        createRule(db, owner, OWNERS[at]?.[2] ?? { kind: 'organization' }, rules[which % rules.length], write);
      }
      const [old, folder] = [folderWith(rules, first), folderWith(rules, second)];
      applyFolder(db, owner, planOf(db, old), { now: startMs });
      const had = OWNERS.map(([, , of]) => rulesOf(db, of));
      const before = worldOf(db);
      const plan = planOf(db, folder, prune);
      const planned = replacementsOf(planView(plan, null).changes).reduce(withRule, before);
      const diff = await accessDiff(judges, before, planned, { withoutCredential: true });
      applyFolder(db, owner, plan, { now: startMs });

      expect(planOf(db, folder, prune).changes).toEqual([]);
      for (const [index, [, , of]] of OWNERS.entries()) {
        const present = rulesOf(db, of);
        const managed = present.filter(({ managedBy }) => managedBy !== null);
        const stated = Object.entries(statedOf(folder, index)).map(([name, each]) => {
          const { canonical: _, ...content } = readRule(each);
          return [name, content];
        });
        expect(Object.fromEntries(managed.map((each) => [each.managedBy?.name, wording(each)]))).toEqual(
          Object.fromEntries(stated),
        );
        const ids = new Map(had[index]?.map(({ id, managedBy }) => [managedBy?.name ?? id, id]));
        for (const { id, managedBy } of managed) {
          const known = ids.get(managedBy?.name ?? '');
          if (known !== undefined) expect(id).toBe(known);
        }
        const unmanaged = present.filter(({ managedBy }) => managedBy === null);
        if (prune) expect(unmanaged).toEqual([]);
        const kept = new Set(present.map(({ id }) => id));
        const left = had[index]?.filter(({ id, managedBy }) => managedBy === null && kept.has(id)) ?? [];
        expect(left).toEqual(expect.arrayContaining(unmanaged));
      }

      const after = worldOf(db);
      const forced = flipsByForce(before, after);
      const addresses = addressesOf(before, after);
      const told = diff.flips.flatMap(({ change, holders, mappings: flipped, addresses: ranges }) =>
        holders.flatMap(({ id }) =>
          flipped.flatMap((mapping) =>
            addresses
              .filter((address) => lies(address, ranges))
              .map((address) => `${change} ${id} ${mapping} ${address}`),
          ),
        ),
      );
      expect(told.toSorted()).toEqual(forced.toSorted());
      db.close();
    }),
    propertyRuns(RUNS),
  );
});

it('a pull states what is live: applied where there is nothing, it makes equal rules, and pulls as the same files', {
  timeout: propertyTimeout(RUNS),
}, () => {
  fc.assert(
    fc.property(fewRules, live, folders, (rules, stored, choices) => {
      const db = seeded();
      applyFolder(db, owner, planOf(db, folderWith(rules, choices)), { now: startMs });
      for (const [at, which] of stored) {
        createRule(db, owner, OWNERS[at]?.[2] ?? { kind: 'organization' }, rules[which % rules.length], write);
      }
      const pulled = readLiveFolder(db, owner, 'policy');
      const files = folderFiles(pulled);
      const read = readPolicyFolder(folderOf(Object.fromEntries(files)), new FixtureSources());
      if ('faults' in read) throw read.faults[0] ?? new Error('no fault');
      expect(read.document).toEqual(pulled);

      const adopted = planOf(db, read.document, true).changes;
      expect(adopted.filter(({ action }) => action !== 'adopt')).toEqual([]);
      expect(adopted).toHaveLength(stored.length);

      const other = seeded();
      applyFolder(other, owner, planOf(other, read.document), { now: startMs });
      for (const [, , of] of OWNERS) {
        const texts = (from: Database): string[] => rulesOf(from, of).map((each) => JSON.stringify(wording(each)));
        expect(texts(other).toSorted()).toEqual(texts(db).toSorted());
      }
      expect(folderFiles(readLiveFolder(other, owner, 'policy'))).toEqual(files);
      db.close();
      other.close();
    }),
    propertyRuns(RUNS),
  );
});

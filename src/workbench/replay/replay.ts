import { policyRevision } from '../../core/authorize.ts';
import { formatTime } from '../../domain/time.ts';
import type {
  ReplayChange,
  ReplayDimension,
  ReplayGroup,
  ReplayReport,
  ReplayUnjudged,
} from '../../generated/types.ts';
import type { Pdp } from '../../policy/pdp.ts';
import type { Database } from '../../store/db/database.ts';
import type { CallFilter } from '../../store/ledger/call-log.ts';
import { decisionIds, inOrderOfData } from '../../store/ledger/logged-verdicts.ts';
import { findNames } from '../../store/tenants/tenants.ts';
import type { OnProgress } from '../world/judges.ts';
import type { World } from '../world/world.ts';
import { type AlikeCalls, gatherDecided } from './alike-calls.ts';
import {
  type ChangeRule,
  createVerdictJudge,
  type JudgedBy,
  type JudgedVerdict,
  subjectsIn,
  type Unjudged,
  type VerdictChange,
  type VerdictDifference,
  type VerdictOutcome,
} from './judge-again.ts';

const MOST_GROUPS = 1000;

export const REPLAY_DIMENSIONS = ['key', 'member', 'rule', 'model'] as const satisfies readonly ReplayDimension[];

/** Which decisions are judged again. */
export interface ReplayScope {
  /** Times in epoch ms, `to` exclusive. */
  readonly filter: CallFilter & { readonly from: number; readonly to: number };
  readonly groupBy: readonly ReplayDimension[];
  /** More decisions are refused; absent: none are. */
  readonly most?: number;
}

/** By what they are judged, and what the report says of it. */
interface ReplayBy extends JudgedBy {
  readonly told: Pick<ReplayReport, 'by' | 'policyRevision' | 'warnings'>;
  /** Names by which people call the subjects and rules that judge, by their ids. */
  readonly names: ReadonlyMap<string, string | null>;
}

/**
 * By a compiled policy and the rules of a world, which is of one organization.
 * @param by `recorded`: not those of the world, but those that each decision saw
 */
export function replayBy(pdp: Pdp, world: World, by: ReplayReport['by'], warnings: readonly string[] = []): ReplayBy {
  const [organization] = world.organizations.values();
  const revision = policyRevision(pdp.bundleDigest, organization?.ruleRevision ?? 0);
  return {
    pdp,
    subjectsOf: by === 'recorded' ? null : subjectsIn(world),
    told: { by, policyRevision: revision, warnings: [...warnings] },
    names: by === 'recorded' ? new Map() : namesById(world),
  };
}

function namesById({ organizations, groups, members, keys }: World): Map<string, string | null> {
  const named = [
    ...[...organizations.values(), ...groups.values()].map(({ id, name, rules }) => ({ id, name, rules })),
    ...[...members.values()].map(({ id, email: name, rules }) => ({ id, name, rules })),
    ...[...keys.values()].map(({ id, description: name, rules }) => ({ id, name, rules })),
  ];
  return new Map(
    named.flatMap(({ id, name, rules }) => [
      [id, name] as const,
      ...rules.map((rule) => [rule.id, rule.description] as const),
    ]),
  );
}

/** A replay whose verdicts are judged one by one, here or elsewhere. */
export interface BegunReplay {
  /** Ids of the verdicts to judge, in the order of their data. */
  readonly verdicts: readonly number[];
  /** Counts an outcome. */
  take(judged: JudgedVerdict): void;
  report(db: Database): ReplayReport;
}

/**
 * Finds the decisions that are to be judged again. Reads in short transactions; what calls have in common is one verdict.
 * @param onProgress what it throws ends the replay. @throws ApiError 400 for more decisions than `most`
 */
export function beginReplay(db: Database, by: ReplayBy, scope: ReplayScope, onProgress: OnProgress): BegunReplay {
  const { filter, groupBy, most = Number.POSITIVE_INFINITY } = scope;
  const { calls, byVerdict } = gatherDecided(db, filter, most, (found) => onProgress(0, found));
  const tally = new Tally(groupBy);
  const missing = new Map(byVerdict);
  let done = 0;
  return {
    verdicts: inOrderOfData(db, [...byVerdict.keys()]),
    take({ id, outcome }) {
      const alike = missing.get(id) ?? [];
      missing.delete(id);
      tally.add(outcome, alike);
      done = alike.reduce((sum, each) => sum + each.calls, done);
      onProgress(done, calls);
    },
    report(database) {
      tally.addUnjudged('not_on_record', [...missing.values()].flat());
      return reportOf(database, by, scope, tally);
    },
  };
}

/** Judges logged decisions again, in this thread. @throws as `beginReplay` */
export function replay(db: Database, by: ReplayBy, scope: ReplayScope, onProgress: OnProgress): ReplayReport {
  const begun = beginReplay(db, by, scope, onProgress);
  for (const judged of createVerdictJudge(db, by)(begun.verdicts)) begun.take(judged);
  return begun.report(db);
}

function reportOf(
  db: Database,
  { told, subjectsOf, names }: ReplayBy,
  { filter, groupBy }: ReplayScope,
  tally: Tally,
): ReplayReport {
  const { organizationId, from, to } = filter;
  const sorted = tally.groups.sorted();
  const groups = sorted.slice(0, MOST_GROUPS);
  const shown = [...groups, ...tally.unjudged.values()].flatMap(({ examples }) => examples);
  const ids = decisionIds(db, organizationId, [...shown, ...tally.differences.map(({ number }) => number)]);
  const idsOf = (numbers: readonly number[]): string[] => numbers.flatMap((number) => ids.get(number) ?? []);
  const unjudged = [...tally.unjudged].map(
    ([reason, { calls, examples }]): ReplayUnjudged => ({ reason, decisions: calls, examples: idsOf(examples) }),
  );
  const differences = tally.differences.map(({ number, calls, recorded, replayed }) => ({
    decisionId: ids.get(number) ?? '',
    decisions: calls,
    recorded,
    replayed,
  }));
  const changed = tally.groups.counts;
  const rules = [...new Set(groups.flatMap(({ ruleIds }) => ruleIds ?? []))]
    .sort()
    .flatMap((id) => tally.groups.rules.get(id) ?? []);
  const named = groups.flatMap(({ keyId, memberId }) => [keyId ?? [], memberId ?? []].flat());
  const stored = findNames(db, organizationId, [
    ...named,
    ...rules.flatMap(({ id, groupId }) => [id, groupId ?? []].flat()),
  ]);
  // Drafts have no name in the database.
  const nameOf = (id: string): string | null => names.get(id) ?? stored.get(id) ?? null;
  const { judged, identical, different, withoutFacts } = tally;
  return {
    ...told,
    from: formatTime(from),
    to: formatTime(to),
    decisions: judged + unjudged.reduce((sum, { decisions }) => sum + decisions, 0),
    unchanged: judged - Object.values(changed).reduce((sum, count) => sum + count, 0),
    changed,
    unjudged,
    otherPolicies: [...tally.otherPolicies].map(([digest, decisions]) => ({ digest, decisions })),
    recorded: subjectsOf === null ? { identical, different, differences } : null,
    withoutFacts,
    groupBy: [...groupBy],
    groups: groups.map((group) => reportedGroup(group, nameOf, idsOf)),
    moreGroups: sorted.length - groups.length,
    rules: rules.map(({ groupId, message, ...rule }) => ({
      ...rule,
      ...(groupId === undefined ? {} : { groupName: nameOf(groupId) ?? groupId }),
      description: message ?? nameOf(rule.id),
    })),
  };
}

function reportedGroup(
  { change, keyId, memberId, model, ruleIds, calls, examples }: ChangeGroup,
  nameOf: (id: string) => string | null,
  idsOf: (numbers: readonly number[]) => string[],
): ReplayGroup {
  const named = (id: string | null) => (id === null ? null : { id, name: nameOf(id) });
  return {
    change,
    key: named(keyId),
    member: named(memberId),
    model,
    ruleIds: ruleIds === null ? null : [...ruleIds],
    decisions: calls,
    examples: idsOf(examples),
  };
}

const MOST_DIFFERENCES = 100;

interface CountedDifference extends VerdictDifference {
  /** Number of the first call. */
  readonly number: number;
  readonly calls: number;
}

/** The outcomes of judging again, in numbers of calls. */
class Tally {
  readonly groups: ChangeGroups;
  /** Made by other policies than the one that judges, by their digests. */
  readonly otherPolicies = new Map<string, number>();
  readonly unjudged = new Map<Unjudged, CallTotal>();
  readonly differences: CountedDifference[] = [];
  judged = 0;
  /** Judged, by a policy that takes the facts of a request. */
  withoutFacts = 0;
  identical = 0;
  different = 0;

  constructor(groupBy: readonly ReplayDimension[]) {
    this.groups = new ChangeGroups(groupBy);
  }

  add(outcome: VerdictOutcome | Unjudged, calls: readonly AlikeCalls[]): void {
    if (typeof outcome === 'string') {
      this.addUnjudged(outcome, calls);
      return;
    }
    const { change, otherPolicy, lacksFacts, difference } = outcome;
    for (const alike of calls) {
      this.judged += alike.calls;
      if (lacksFacts) this.withoutFacts += alike.calls;
      if (otherPolicy !== null) {
        this.otherPolicies.set(otherPolicy, (this.otherPolicies.get(otherPolicy) ?? 0) + alike.calls);
      }
      if (difference !== undefined) this.#addProof(difference, alike);
      if (change !== null) this.groups.add(change, alike);
    }
  }

  addUnjudged(reason: Unjudged, calls: readonly AlikeCalls[]): void {
    for (const alike of calls) this.unjudged.set(reason, withCalls(this.unjudged.get(reason) ?? NO_CALLS, alike));
  }

  #addProof(difference: VerdictDifference | null, { calls, first }: AlikeCalls): void {
    if (difference === null) {
      this.identical += calls;
      return;
    }
    this.different += calls;
    if (this.differences.length < MOST_DIFFERENCES) this.differences.push({ number: first, calls, ...difference });
  }
}

const MOST_EXAMPLES = 3;

/** Number of calls, and the numbers of the first of them, ascending; one for calls that are alike. */
interface CallTotal {
  calls: number;
  examples: readonly number[];
}

const NO_CALLS: CallTotal = { calls: 0, examples: [] };

const withCalls = ({ calls, examples }: CallTotal, alike: Pick<AlikeCalls, 'calls' | 'first'>): CallTotal => ({
  calls: calls + alike.calls,
  examples: [...examples, alike.first].sort((a, b) => a - b).slice(0, MOST_EXAMPLES),
});

/** Fields that it is not grouped by are null. */
interface ChangeGroup extends CallTotal {
  readonly change: ReplayChange;
  readonly keyId: string | null;
  readonly memberId: string | null;
  readonly model: string | null;
  readonly ruleIds: readonly string[] | null;
}

/** Puts together what changed alike. */
class ChangeGroups {
  readonly #groupBy: ReadonlySet<ReplayDimension>;
  readonly #groups = new Map<string, ChangeGroup>();
  /** Those of the groups, by their ids. */
  readonly rules = new Map<string, ChangeRule>();
  /** Calls, by what changed. */
  readonly counts: Record<ReplayChange, number> = { denied: 0, permitted: 0, widened: 0, narrowed: 0 };

  constructor(groupBy: readonly ReplayDimension[]) {
    this.#groupBy = new Set(groupBy);
  }

  add({ change, rules }: VerdictChange, alike: AlikeCalls): void {
    const by = <T>(dimension: ReplayDimension, value: T): T | null => (this.#groupBy.has(dimension) ? value : null);
    const place = {
      change,
      keyId: by('key', alike.keyId),
      memberId: by('member', alike.memberId),
      model: by('model', alike.requestedModel),
      ruleIds: by(
        'rule',
        rules.map(({ id }) => id),
      ),
    };
    const key = JSON.stringify(place);
    this.#groups.set(key, { ...place, ...withCalls(this.#groups.get(key) ?? NO_CALLS, alike) });
    this.counts[change] += alike.calls;
    for (const rule of rules) this.rules.set(rule.id, rule);
  }

  /** Those of most calls first; among equals the one whose first call came first. */
  sorted(): ChangeGroup[] {
    return [...this.#groups.values()].sort((a, b) => b.calls - a.calls || (a.examples[0] ?? 0) - (b.examples[0] ?? 0));
  }
}

import type { PolicyCandidate, PolicyInput } from '../../generated/types.ts';
import { getOrMake } from '../../lib/collections.ts';
import type { Database } from '../../store/db/database.ts';
import type { CallFilter } from '../../store/ledger/call-log.ts';
import {
  inOrderOfData,
  listOrigins,
  listTargets,
  listVerdicts,
  pagesOfDecided,
} from '../../store/ledger/logged-verdicts.ts';
import type { AlikeCalls } from './gather-decided.ts';
import { createJudgeAgain, type JudgedBy } from './judge-again.ts';

/** Permitted calls that are alike: decided alike, and served by the same, after the same were tried. */
export interface Use extends AlikeCalls {
  readonly verdict: number;
  /** The mappings that served them or were tried for them; at least one. */
  readonly targets: readonly string[];
}

/** Permitted calls that reached a provider. */
export function gatherUse(db: Database, filter: CallFilter & { readonly from: number; readonly to: number }): Use[] {
  const alike = new Map<string, { verdict: number; origin: number; target: number; calls: number; first: number }>();
  for (const page of pagesOfDecided(db, { ...filter, outcome: 'permit' })) {
    for (const { number, origin, verdict, target } of page) {
      if (target === null) continue;
      const same = { verdict, origin, target };
      getOrMake(alike, JSON.stringify(same), () => ({ ...same, calls: 0, first: number })).calls += 1;
    }
  }
  const ids = (of: 'origin' | 'target'): number[] => [...new Set(alike.values().map((each) => each[of]))];
  const origins = new Map(listOrigins(db, filter.organizationId, ids('origin')).map((origin) => [origin.id, origin]));
  const targets = listTargets(db, ids('target'));
  return [...alike.values()].flatMap(({ origin: id, target, ...counts }) => {
    const [origin, used = []] = [origins.get(id), targets.get(target)];
    return origin === undefined || used.length === 0 ? [] : [{ ...origin, ...counts, targets: used }];
  });
}

/** A use whose targets are all permitted. */
export interface PermittedUse extends Pick<PolicyInput, 'action' | 'client_ip'> {
  readonly use: Use;
  /** The targets, as the decision saw them. */
  readonly candidates: readonly PolicyCandidate[];
}

export interface JudgedUse {
  readonly permitted: readonly PermittedUse[];
  /** The rest, whose targets are not all permitted, or cannot be judged. */
  readonly lost: readonly Use[];
}

/** Judges again whether calls may use what they used. */
export function judgeUse(db: Database, by: JudgedBy, uses: readonly Use[]): JudgedUse {
  const byVerdict = Map.groupBy(uses, ({ verdict }) => verdict);
  const { judge } = createJudgeAgain(db, by);
  const permitted: PermittedUse[] = [];
  for (const verdict of listVerdicts(db, inOrderOfData(db, [...byVerdict.keys()]))) {
    const input: PolicyInput = JSON.parse(verdict.inputJson);
    const judgement = judge(verdict, input);
    const may = new Set(typeof judgement === 'string' ? [] : judgement.decision.permitted);
    for (const use of byVerdict.get(verdict.id) ?? []) {
      if (!use.targets.every((target) => may.has(target))) continue;
      const candidates = input.candidates.filter(({ id }) => use.targets.includes(id));
      permitted.push({ use, action: input.action, client_ip: input.client_ip, candidates });
    }
  }
  const kept = new Set(permitted.map(({ use }) => use));
  return { permitted, lost: uses.filter((use) => !kept.has(use)) };
}

import { invalidRequest } from '../../domain/errors.ts';
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
import { createJudgeAgain, type JudgedBy } from './judge-again.ts';

/** Calls that are alike: the same was asked, by the same, and decided by the same. */
export interface AlikeCalls {
  readonly keyId: string;
  readonly memberId: string;
  readonly requestedModel: string;
  readonly calls: number;
  /** The number of the first of them. */
  readonly first: number;
}

interface DecidedCalls {
  readonly calls: number;
  /** By the ids of their verdicts. */
  readonly byVerdict: ReadonlyMap<number, readonly AlikeCalls[]>;
}

/** Calls of one verdict. */
interface VerdictCalls {
  readonly origin: number;
  calls: number;
  readonly first: number;
}

/** @param onPage told how many were found so far. @throws ApiError 400 for more than `most` */
export function gatherDecided(
  db: Database,
  filter: CallFilter & { readonly from: number; readonly to: number },
  most: number,
  onPage: (found: number) => void,
): DecidedCalls {
  const counted = new Map<number, VerdictCalls[]>();
  let calls = 0;
  for (const page of pagesOfDecided(db, filter)) {
    calls += page.length;
    if (calls > most) {
      throw invalidRequest(`There are more than ${most} decisions: ask for less, or use the command line.`, '/from');
    }
    for (const { number, origin, verdict } of page) {
      const ofVerdict = getOrMake(counted, verdict, () => []);
      const known = ofVerdict.find((each) => each.origin === origin);
      if (known === undefined) ofVerdict.push({ origin, calls: 1, first: number });
      else known.calls += 1;
    }
    onPage(calls);
  }
  const ids = new Set(counted.values().flatMap((ofVerdict) => ofVerdict.map(({ origin }) => origin)));
  const origins = new Map(listOrigins(db, filter.organizationId, [...ids]).map((origin) => [origin.id, origin]));
  const alike = ({ origin: id, ...count }: VerdictCalls): AlikeCalls[] => {
    const origin = origins.get(id);
    return origin === undefined ? [] : [{ ...origin, ...count }];
  };
  return { calls, byVerdict: new Map([...counted].map(([verdict, each]) => [verdict, each.flatMap(alike)])) };
}

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

interface JudgedUse {
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

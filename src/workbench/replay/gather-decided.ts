import { invalidRequest } from '../../domain/errors.ts';
import { getOrMake } from '../../lib/collections.ts';
import type { Database } from '../../store/db/database.ts';
import type { CallFilter } from '../../store/ledger/call-log.ts';
import { listOrigins, pagesOfDecided } from '../../store/ledger/logged-verdicts.ts';

/** Calls that are alike: the same was asked, by the same, and decided by the same. */
export interface AlikeCalls {
  readonly keyId: string;
  readonly memberId: string;
  readonly requestedModel: string;
  readonly calls: number;
  /** The number of the first of them. */
  readonly first: number;
}

export interface Gathered {
  readonly calls: number;
  /** By the ids of their verdicts. */
  readonly byVerdict: ReadonlyMap<number, readonly AlikeCalls[]>;
}

/** Calls of one verdict. */
interface Counted {
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
): Gathered {
  const counted = new Map<number, Counted[]>();
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
  const alike = ({ origin: id, ...count }: Counted): AlikeCalls[] => {
    const origin = origins.get(id);
    return origin === undefined ? [] : [{ ...origin, ...count }];
  };
  return { calls, byVerdict: new Map([...counted].map(([verdict, each]) => [verdict, each.flatMap(alike)])) };
}

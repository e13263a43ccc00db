import { sql } from 'kysely';
import { bytesOfId } from '../../domain/id.ts';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import { findLastIndexed } from './call-index.ts';
import { earliestNumber, endOfNear } from './call-number.ts';
import { numbersIn } from './index-cells.ts';

/**
 * The number of a call of the organization; undefined when it has none of this id. It stands within a minute of the time in its id, or
 * among the few that the index names as displaced, or that are not in the index yet. Not for the serving thread.
 * @param id of the call or of its decision
 */
export function findNumber(db: Database, organizationId: string, id: string): number | undefined {
  const bytes = bytesOfId(id);
  const rows = build
    .selectFrom('ledger')
    .innerJoin('call_origins', 'call_origins.id', 'ledger.origin')
    .where('call_origins.organizationId', '=', organizationId)
    .select('ledger.number')
    .orderBy('ledger.number')
    .limit(1);
  const ofId = id.startsWith('dec_')
    ? rows.where(sql<boolean>`coalesce(ledger.decisionId, ledger.id) = ${bytes}`)
    : rows.where('ledger.id', '=', bytes);
  const [first, end] = [earliestNumber(id), endOfNear(id)];
  const near = db.get(ofId.where('ledger.number', '>=', first).where('ledger.number', '<', end));
  if (near !== undefined) return near.number;
  const displaced = displacedFrom(db, end);
  const later = displaced.length === 0 ? undefined : db.get(ofId.where('ledger.number', 'in', displaced));
  if (later !== undefined) return later.number;
  return db.get(ofId.where('ledger.number', '>', Math.max(findLastIndexed(db), end)))?.number;
}

/** Numbers, from one on, of calls in the index that stand far behind the time in their id. */
const displacedFrom = (db: Database, first: number): number[] =>
  db
    .all(build.selectFrom('call_index').select('cells').where('name', '=', 'displaced').where('last', '>=', first))
    .flatMap(({ cells }) => [...numbersIn(cells)]);

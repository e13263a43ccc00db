import type { Insertable } from 'kysely';
import { idsFrom } from '../../src/domain/id.ts';
import type { Database } from '../../src/store/db/database.ts';
import { build } from '../../src/store/db/sql.ts';
import type { CallsTable } from '../../src/store/db/tables.ts';

let number = 0;

/** The id of a call made at a time; no other has it. */
function callIdAt(time: number): string {
  number += 1;
  return idsFrom('call', time).slice(0, -8) + number.toString(16).padStart(8, '0');
}

export type StoredCall = Partial<Insertable<CallsTable>> &
  Pick<CallsTable, 'organization_id' | 'project_id' | 'key_id' | 'member_id'>;

/** Stores a call as the ledger leaves it: settled, and answered with 200, unless it is said otherwise. */
export function insertCall(db: Database, time: number | string, call: StoredCall): void {
  const at = new Date(time).getTime();
  db.run(
    build.insertInto('calls').values({
      id: callIdAt(at),
      decision_id: `dec_${number}`,
      state: 'settled',
      action: 'chat',
      request_id: `req_${number}`,
      requested_model: 'large',
      stream: 0,
      created_at: at,
      settled_at: at,
      status_code: 200,
      ...call,
    }),
  );
}

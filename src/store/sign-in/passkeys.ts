import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import type { PasskeysTable, Row } from '../db/tables.ts';

/** A WebAuthn credential of a member. */
export type PasskeyRecord = Omit<Row<PasskeysTable>, 'transportsJson'> & { readonly transports: readonly string[] };

export type NewPasskey = Omit<PasskeyRecord, 'createdAt' | 'lastUsedAt'>;

const toPasskey = ({ transportsJson, ...row }: Row<PasskeysTable>): PasskeyRecord => ({
  ...row,
  transports: JSON.parse(transportsJson),
});

/** A credential that is there already violates a constraint. */
export function insertPasskey(db: Database, passkey: NewPasskey, now: number): PasskeyRecord {
  const { transports, ...columns } = passkey;
  const row = { ...columns, transportsJson: JSON.stringify(transports), createdAt: now, lastUsedAt: null };
  db.run(build.insertInto('passkeys').values(row));
  return toPasskey(row);
}

/** By the id that an authenticator gave it, unguessable as a secret is: it finds the organization, and so carries none. */
export function findPasskeyByCredential(db: Database, credentialId: string): PasskeyRecord | undefined {
  const row = db.get(build.selectFrom('passkeys').selectAll().where('credentialId', '=', credentialId));
  return row === undefined ? undefined : toPasskey(row);
}

/** All of a member's, oldest first. */
export const passkeysOf = (db: Database, organizationId: string, memberId: string): PasskeyRecord[] =>
  db
    .all(
      build
        .selectFrom('passkeys')
        .selectAll()
        .where('organizationId', '=', organizationId)
        .where('memberId', '=', memberId)
        .orderBy('id'),
    )
    .map(toPasskey);

/** Notes that it was used. False, and nothing is noted, when the counter has changed from what was read. */
export const touchPasskey = (db: Database, passkey: PasskeyRecord, counter: number, now: number): boolean =>
  db.run(
    build
      .updateTable('passkeys')
      .set({ counter, lastUsedAt: now })
      .where('organizationId', '=', passkey.organizationId)
      .where('id', '=', passkey.id)
      .where('counter', '=', passkey.counter),
  ) === 1;

export function deletePasskey(db: Database, organizationId: string, id: string): void {
  db.run(build.deleteFrom('passkeys').where('organizationId', '=', organizationId).where('id', '=', id));
}

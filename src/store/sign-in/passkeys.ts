import type { Selectable } from 'kysely';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import type { PasskeysTable } from '../db/tables.ts';

/** A WebAuthn credential of a member. Binary values in base64url, times in epoch ms. */
export interface PasskeyRecord {
  readonly id: string;
  readonly organizationId: string;
  readonly memberId: string;
  /** The host name at which it works. */
  readonly rpId: string;
  readonly credentialId: string;
  readonly publicKey: string;
  readonly counter: number;
  readonly transports: readonly string[];
  readonly label: string;
  readonly createdAt: number;
  readonly lastUsedAt: number | null;
}

export type NewPasskey = Omit<PasskeyRecord, 'createdAt' | 'lastUsedAt'>;

const toPasskey = (row: Selectable<PasskeysTable>): PasskeyRecord => ({
  id: row.id,
  organizationId: row.organization_id,
  memberId: row.member_id,
  rpId: row.rp_id,
  credentialId: row.credential_id,
  publicKey: row.public_key,
  counter: row.counter,
  transports: JSON.parse(row.transports_json),
  label: row.label,
  createdAt: row.created_at,
  lastUsedAt: row.last_used_at,
});

/** A credential that is there already violates a constraint. */
export function insertPasskey(db: Database, passkey: NewPasskey, now: number): PasskeyRecord {
  const row = {
    id: passkey.id,
    organization_id: passkey.organizationId,
    member_id: passkey.memberId,
    rp_id: passkey.rpId,
    credential_id: passkey.credentialId,
    public_key: passkey.publicKey,
    counter: passkey.counter,
    transports_json: JSON.stringify(passkey.transports),
    label: passkey.label,
    created_at: now,
    last_used_at: null,
  };
  db.run(build.insertInto('passkeys').values(row));
  return toPasskey(row);
}

/** By the id that an authenticator gave it, unguessable as a secret is: it finds the organization, and so carries none. */
export function findPasskeyByCredential(db: Database, credentialId: string): PasskeyRecord | undefined {
  const row = db.get(build.selectFrom('passkeys').selectAll().where('credential_id', '=', credentialId));
  return row === undefined ? undefined : toPasskey(row);
}

/** All of a member's, oldest first. */
export const passkeysOf = (db: Database, organizationId: string, memberId: string): PasskeyRecord[] =>
  db
    .all(
      build
        .selectFrom('passkeys')
        .selectAll()
        .where('organization_id', '=', organizationId)
        .where('member_id', '=', memberId)
        .orderBy('id'),
    )
    .map(toPasskey);

/** Notes that it was used. False, and nothing is noted, when the counter has changed from what was read. */
export const touchPasskey = (db: Database, passkey: PasskeyRecord, counter: number, now: number): boolean =>
  db.run(
    build
      .updateTable('passkeys')
      .set({ counter, last_used_at: now })
      .where('organization_id', '=', passkey.organizationId)
      .where('id', '=', passkey.id)
      .where('counter', '=', passkey.counter),
  ) === 1;

export function deletePasskey(db: Database, organizationId: string, id: string): void {
  db.run(build.deleteFrom('passkeys').where('organization_id', '=', organizationId).where('id', '=', id));
}

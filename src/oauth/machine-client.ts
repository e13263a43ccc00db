import { randomBytes } from 'node:crypto';
import { SCOPE } from '../domain/oauth-token.ts';
import { type AdapterDeps, type Admission, SqliteAdapter } from './sqlite-adapter.ts';

/** A client that acts by itself, and its secret: nothing but its hash is kept. */
export interface MachineClient {
  readonly id: string;
  readonly secret: string;
}

/** Registers a client that acts by itself, as `/oauth/register` would. @param admission makes it stand for a key */
export async function createMachineClient(
  deps: Pick<AdapterDeps, 'store' | 'clock'>,
  name: string,
  admission: Admission,
): Promise<MachineClient> {
  const id = crypto.randomUUID();
  const secret = randomBytes(32).toString('base64url');
  await new SqliteAdapter('Client', { ...deps, admissions: new Map([[id, admission]]) }).upsert(id, {
    client_id: id,
    client_name: name,
    client_secret: secret,
    grant_types: ['client_credentials'],
    response_types: [],
    redirect_uris: [],
    scope: SCOPE,
  });
  return { id, secret };
}

import type { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import type { Adapter, AdapterPayload } from 'oidc-provider';
import { endGrant, givesAccess } from '../admin/keys/oauth-grants.ts';
import { hashOAuthSecret, OAUTH_SCOPE } from '../domain/identity.ts';
import type { Clock } from '../domain/time.ts';
import type { Database } from '../store/db/database.ts';
import {
  consumeOAuthItem,
  deleteExpiredOAuthItems,
  deleteOAuthItem,
  findGrantOfItem,
  findOAuthItem,
  putOAuthItem,
  type Registrant,
  type StoredItem,
  UNUSED_CLIENT_MS,
} from '../store/sign-in/oauth.ts';
import type { Store } from '../store/store.ts';
import { redirectFault } from './oauth-requests.ts';

export interface AdapterDeps {
  readonly store: Pick<Store, 'read' | 'write'>;
  readonly clock: Clock;
  /** Admissions of the clients that are being registered, by the clients' ids. */
  readonly admissions: ReadonlyMap<string, Admission>;
  /** Writes of a request, which wait for its end; without it, each is made at once. */
  readonly pending?: AsyncLocalStorage<Write[]>;
}

/** Registrant of a client, and the work done in the transaction that stores it: it refuses the client by throwing. */
export interface Admission {
  readonly registrant: Registrant;
  readonly admit: (db: Database, client: { readonly id: string; readonly name: string }, now: number) => void;
}

/** A write of a request. */
export interface Write {
  /** Whether what it gives may be given. */
  readonly mayRun: (db: Database, now: number) => boolean;
  /** False: what it uses up was used before, or is gone. */
  readonly run: (db: Database, now: number) => boolean;
}

/**
 * Makes the writes of a request, inside one transaction of the caller's: what is used up goes together with what is given for it.
 * False, and nothing is given: it was used before, or its grant gives nothing any more.
 */
export const runWrites = (writes: readonly Write[], db: Database, now: number): boolean =>
  writes.every(({ mayRun }) => mayRun(db, now)) && writes.every(({ run }) => run(db, now));

/** Expired items that a write clears away: more than it adds. */
const SWEPT = 10;

/** The ids of all other models are what the holder shows: cookies, codes and tokens. They are stored hashed. */
const PUBLIC_IDS = ['Client', 'Grant'];

/** Models that a grant gives. */
const GIVEN = ['AuthorizationCode', 'AccessToken', 'RefreshToken', 'ClientCredentials'];

const always = (): boolean => true;

/** Store of one of the models of `oidc-provider`: in SQLite, with nothing usable in clear. */
export class SqliteAdapter implements Adapter {
  readonly #model: string;
  readonly #deps: AdapterDeps;

  constructor(model: string, deps: AdapterDeps) {
    this.#model = model;
    this.#deps = deps;
  }

  /** @param expiresIn seconds */
  upsert(id: string, payload: AdapterPayload, expiresIn?: number): Promise<void> {
    const grantId = this.#grantOf(payload);
    const needsGrant = GIVEN.includes(this.#model);
    return this.#write({
      mayRun: (db, now) => !needsGrant || (grantId !== null && givesAccess(db, grantId, now)),
      run: (db, now) => {
        this.#put(db, { id, grantId, payload, expiresAt: this.#expiryOf(expiresIn, now) }, now);
        return true;
      },
    });
  }

  async find(id: string): Promise<AdapterPayload | undefined> {
    const item = await this.#find({ id: this.#idOf(id) });
    if (item === undefined) return undefined;
    return this.#model === 'Client' ? usableClient(item) : { ...item, jti: id };
  }

  /** Sessions alone are looked for so, to compare them. */
  findByUid(uid: string): Promise<AdapterPayload | undefined> {
    return this.#find({ uid });
  }

  async findByUserCode(): Promise<undefined> {
    // The device flow looks for this, and is not offered.
  }

  /** A second use of an item ends its grant, and with it everything that the first use obtained. */
  consume(id: string): Promise<void> {
    const idHash = this.#idOf(id);
    return this.#write({
      mayRun: always,
      run: (db, now) => {
        if (consumeOAuthItem(db, this.#model, idHash, now)) return true;
        const grantId = findGrantOfItem(db, this.#model, idHash);
        if (grantId !== undefined) endGrant(db, grantId, now);
        return false;
      },
    });
  }

  /** An interaction is destroyed by who goes on with its answer: one alone. */
  destroy(id: string): Promise<void> {
    const idHash = this.#idOf(id);
    return this.#write({
      mayRun: always,
      run: (db, now) => {
        const wasThere = deleteOAuthItem(db, this.#model, idHash);
        if (this.#model === 'Grant') endGrant(db, id, now);
        return wasThere || this.#model !== 'Interaction';
      },
    });
  }

  /** Is called for each model; the first call ends all that belongs to the grant. */
  revokeByGrantId(grantId: string): Promise<void> {
    return this.#write({
      mayRun: always,
      run: (db, now) => {
        endGrant(db, grantId, now);
        return true;
      },
    });
  }

  async #write(write: Write): Promise<void> {
    const pending = this.#deps.pending?.getStore();
    if (pending !== undefined) return void pending.push(write);
    if (await this.#deps.store.write((db, now) => runWrites([write], db, now))) return;
    throw new Error(`A ${this.#model} was written outside of the request that uses up what it is given for.`);
  }

  #put(
    db: Database,
    item: { id: string; payload: AdapterPayload; grantId: string | null; expiresAt: number | null },
    now: number,
  ): void {
    const { id, grantId, expiresAt } = item;
    const { jti, client_secret: clientSecret, ...rest } = item.payload;
    const admission = this.#model === 'Client' ? this.#deps.admissions.get(id) : undefined;
    deleteExpiredOAuthItems(db, now, SWEPT);
    putOAuthItem(
      db,
      {
        model: this.#model,
        id: this.#idOf(id),
        payload: { ...rest, ...(clientSecret === undefined ? {} : { client_secret: hashOAuthSecret(clientSecret) }) },
        grantId,
        uid: rest.uid ?? null,
        expiresAt,
        registrant: admission?.registrant ?? null,
      },
      now,
    );
    admission?.admit(db, { id, name: rest.client_name ?? id }, now);
  }

  async #find(by: { readonly id: string } | { readonly uid: string }): Promise<AdapterPayload | undefined> {
    const now = this.#deps.clock.now();
    return toPayload(await this.#deps.store.read((db) => findOAuthItem(db, this.#model, by, now)));
  }

  #idOf(id: string): string {
    return PUBLIC_IDS.includes(this.#model) ? id : hashOAuthSecret(id);
  }

  /** Returns the id with which the item ends: its grant's, or that of the client that acts by itself. */
  #grantOf({ grantId, clientId }: AdapterPayload): string | null {
    return (this.#model === 'ClientCredentials' ? clientId : grantId) ?? null;
  }

  /** A client that nobody has granted anything is forgotten; a grant keeps it. */
  #expiryOf(expiresIn: number | undefined, now: number): number | null {
    if (this.#model === 'Client') return now + UNUSED_CLIENT_MS;
    return expiresIn === undefined ? null : now + expiresIn * 1000;
  }
}

/** The client without the addresses that are refused now, however they came into the database. */
function usableClient(client: AdapterPayload): AdapterPayload {
  const { redirect_uris: uris } = client;
  if (!Array.isArray(uris)) return client;
  return { ...client, redirect_uris: uris.filter((uri) => redirectFault(String(uri)) === undefined) };
}

function toPayload(item: StoredItem | undefined): AdapterPayload | undefined {
  if (item === undefined || typeof item.payload !== 'object' || item.payload === null) return undefined;
  return { ...item.payload, ...(item.consumedAt === null ? {} : { consumed: Math.floor(item.consumedAt / 1000) }) };
}

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
    scope: OAUTH_SCOPE,
  });
  return { id, secret };
}

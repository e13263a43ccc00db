import type { Adapter, AdapterPayload } from 'oidc-provider';
import { endGrant } from '../admin/sign-in/oauth-grants.ts';
import { hashOAuthSecret } from '../domain/oauth-token.ts';
import type { Clock } from '../domain/time.ts';
import type { Database } from '../store/db/database.ts';
import {
  consumeOAuthItem,
  deleteExpiredOAuthItems,
  deleteOAuthItem,
  findOAuthItem,
  putOAuthItem,
  type StoredItem,
  UNUSED_CLIENT_MS,
} from '../store/sign-in/oauth.ts';
import type { Store } from '../store/store.ts';

export interface AdapterDeps {
  readonly store: Pick<Store, 'read' | 'write'>;
  readonly clock: Clock;
  /** What is done, by client, in the transaction that stores it. */
  readonly bindings: ReadonlyMap<string, Binding>;
}

/** Makes a client that acts by itself stand for a key. */
export type Binding = (db: Database, client: { readonly id: string; readonly name: string }, now: number) => void;

/** Expired items that a write clears away: more than it adds. */
const SWEPT = 10;

/** The ids of all other models are what the holder shows: cookies, codes and tokens. They are stored hashed. */
const PUBLIC_IDS = ['Client', 'Grant'];

/** Where `oidc-provider` keeps one of its models: in SQLite, with nothing in clear that could be used. */
export class SqliteAdapter implements Adapter {
  readonly #model: string;
  readonly #deps: AdapterDeps;

  constructor(model: string, deps: AdapterDeps) {
    this.#model = model;
    this.#deps = deps;
  }

  /** @param expiresIn seconds */
  async upsert(id: string, payload: AdapterPayload, expiresIn?: number): Promise<void> {
    const { jti, client_secret: clientSecret, ...rest } = payload;
    await this.#deps.store.write((db, now) => {
      deleteExpiredOAuthItems(db, now, SWEPT);
      putOAuthItem(
        db,
        {
          model: this.#model,
          id: this.#idOf(id),
          payload: {
            ...rest,
            ...(clientSecret === undefined ? {} : { client_secret: hashOAuthSecret(clientSecret) }),
          },
          grantId: this.#grantOf(payload),
          uid: payload.uid ?? null,
          expiresAt: this.#expiryOf(expiresIn, now),
        },
        now,
      );
      if (this.#model === 'Client') this.#deps.bindings.get(id)?.(db, { id, name: payload.client_name ?? id }, now);
    });
  }

  async find(id: string): Promise<AdapterPayload | undefined> {
    const item = await this.#find({ id: this.#idOf(id) });
    if (item === undefined) return undefined;
    return this.#model === 'Client' ? item : { ...item, jti: id };
  }

  /** Sessions alone are looked for so, to compare them. */
  findByUid(uid: string): Promise<AdapterPayload | undefined> {
    return this.#find({ uid });
  }

  async findByUserCode(): Promise<undefined> {
    // Of the device flow, which there is not.
  }

  async consume(id: string): Promise<void> {
    await this.#deps.store.write((db, now) => consumeOAuthItem(db, this.#model, this.#idOf(id), now));
  }

  async destroy(id: string): Promise<void> {
    const idHash = this.#idOf(id);
    await this.#deps.store.write((db, now) => {
      deleteOAuthItem(db, this.#model, idHash);
      if (this.#model === 'Grant') endGrant(db, id, now);
    });
  }

  /** Is called for each model; the first call ends all that belongs to the grant. */
  async revokeByGrantId(grantId: string): Promise<void> {
    await this.#deps.store.write((db, now) => endGrant(db, grantId, now));
  }

  async #find(by: { readonly id: string } | { readonly uid: string }): Promise<AdapterPayload | undefined> {
    const now = this.#deps.clock.now();
    return toPayload(await this.#deps.store.read((db) => findOAuthItem(db, this.#model, by, now)));
  }

  #idOf(id: string): string {
    return PUBLIC_IDS.includes(this.#model) ? id : hashOAuthSecret(id);
  }

  /** What ends the item: its grant, or the client that acts by itself. */
  #grantOf({ grantId, clientId }: AdapterPayload): string | null {
    return (this.#model === 'ClientCredentials' ? clientId : grantId) ?? null;
  }

  /** A client that nobody has granted anything is forgotten; a grant keeps it. */
  #expiryOf(expiresIn: number | undefined, now: number): number | null {
    if (this.#model === 'Client') return now + UNUSED_CLIENT_MS;
    return expiresIn === undefined ? null : now + expiresIn * 1000;
  }
}

function toPayload(item: StoredItem | undefined): AdapterPayload | undefined {
  if (item === undefined || typeof item.payload !== 'object' || item.payload === null) return undefined;
  return { ...item.payload, ...(item.consumedAt === null ? {} : { consumed: Math.floor(item.consumedAt / 1000) }) };
}

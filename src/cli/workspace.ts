import type { Actor } from '../admin/audit/audit-trail.ts';
import type { RuleWrite } from '../admin/rules/iam-rules.ts';
import { type Catalog, createCatalog } from '../catalog/catalog.ts';
import { type Config, readConfig } from '../config/config.ts';
import { servedProviders } from '../config/upstreams.ts';
import type { Pepper } from '../domain/id.ts';
import type { EncryptionKey } from '../domain/provider.ts';
import { systemClock } from '../domain/time.ts';
import { checkDataDir, type Dispensable } from '../store/backup/check-data-dir.ts';
import { DataDirInUse, databasePath, lockDataDir, withSecretsLocked } from '../store/db/data-dir.ts';
import { type Database, openDatabase } from '../store/db/database.ts';
import { StoreUnavailable } from '../store/db/sqlite-file.ts';
import { loadSecrets, type ServerSecrets } from '../store/secrets/secrets.ts';
import { createStore } from '../store/store.ts';
import { listOrganizations } from '../store/tenants/tenants.ts';
import type { Installation } from '../workbench/world/world.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Context of a command; `now` in epoch ms. */
export interface Workspace {
  readonly db: Database;
  readonly now: number;
  readonly actor: Actor;
  readonly config: Config;
  /** Loaded when first asked for. */
  readonly pepper: () => Pepper;
  /** Loaded when first asked for. */
  readonly encryptionKey: () => EncryptionKey;
  readonly catalog: () => Catalog;
  /** The catalogue, and the providers that the operator has a credential for. */
  readonly installation: () => Installation;
}

/** The command line waits this long for a server's transaction to end. */
export const BUSY_TIMEOUT_MS = 5000;

/**
 * Runs `work` on the database of `DATA_DIR`, also while a server is running; a write is one transaction.
 * @param organizationId may be absent where there is only one. @param dispensable secrets that `work` can do without
 * @throws Error when there is no database, or it does not fit its secrets
 */
export const inWorkspace = <T>(
  env: Environment,
  access: 'read' | 'write',
  organizationId: string | undefined,
  work: (workspace: Workspace) => T,
  ...dispensable: readonly Dispensable[]
): Promise<T> =>
  inDatabase(
    env,
    access,
    (db, config) => {
      const installation = (): Installation => installationOf(config);
      return work({
        db,
        now: systemClock.now(),
        actor: { kind: 'cli', organizationId: chooseOrganization(db, organizationId) },
        config,
        pepper: () => secretsOf(config).peppers[0],
        encryptionKey: () => secretsOf(config).encryptionKeys[0],
        catalog: () => installation().catalog,
        installation,
      });
    },
    ...dispensable,
  );

/** The models that the configuration lets everyone call. */
export const installationOf = (config: Config): Installation => ({
  catalog: createCatalog({ ...config, clock: systemClock }),
  servedProviders: new Set(servedProviders(config)),
});

/** The server's secrets, which must be there. */
export const secretsOf = ({ dataDir, secrets }: Config): ServerSecrets =>
  loadSecrets(dataDir, { create: false, given: secrets });

/** The secrets of `DATA_DIR`, which fit its database; undefined: there is none. @throws Error that names the file which is wrong */
export const checked = (
  { dataDir, secrets: given }: Config,
  ...dispensable: readonly Dispensable[]
): ServerSecrets | undefined => checkDataDir({ dataDir, given, now: systemClock.now(), dispensable });

/** Runs work on the database as above, for no organization in particular. */
export async function inDatabase<T>(
  env: Environment,
  access: 'read' | 'write',
  work: (db: Database, config: Config) => T,
  ...dispensable: readonly Dispensable[]
): Promise<T> {
  const config = readConfig(env);
  const secrets = checked(config, ...dispensable);
  const store = createStore({
    path: databasePath(config.dataDir),
    clock: systemClock,
    durability: config.durability,
    busyTimeoutMs: BUSY_TIMEOUT_MS,
    ...(access === 'write' && secrets !== undefined ? { auditKey: secrets.signingKey.key } : {}),
  });
  const query = (db: Database): T => work(db, config);
  try {
    return await (access === 'write' ? store.write(query) : store.read(query));
  } catch (error) {
    if (!(error instanceof StoreUnavailable) || !(error.cause instanceof Error)) throw error;
    throw new Error(`${databasePath(config.dataDir)}: ${error.cause.message}.`, { cause: error });
  } finally {
    store.close();
  }
}

function chooseOrganization(db: Database, wanted: string | undefined): string {
  const organizations = listOrganizations(db);
  const [first] = organizations;
  if (first === undefined) throw new Error('There is no organization yet: the first start of the server makes one.');
  if (wanted === undefined && organizations.length === 1) return first.id;
  const named = organizations.filter(({ id, name }) => id === wanted || name === wanted);
  const [only] = named;
  if (only !== undefined && named.length === 1) return only.id;
  const known = organizations.map(({ id, name }) => `${id} (${name})`).join(', ');
  throw new Error(
    wanted === undefined
      ? `Name the organization with --org: ${known}.`
      : `There is no organization ${wanted}; there are: ${known}.`,
  );
}

/** Inputs for a write of rules, apart from the database. */
export const ruleWriteOf = ({ now, catalog, config }: Workspace): RuleWrite => ({
  now,
  catalog: catalog(),
  trustedProxies: config.trustedProxies ?? undefined,
});

/** Reads the configuration and keeps every server away from the data directory while `work` runs. @throws Error when one uses it */
export async function whileNobodyServes<T>(env: Environment, work: (config: Config) => T | Promise<T>): Promise<T> {
  const config = readConfig(env);
  process.umask(0o077); // Files in the data directory belong to its owner alone, as with `serve`.
  const lock = lockFor(config.dataDir);
  try {
    return await work(config);
  } finally {
    lock.release();
  }
}

/**
 * Runs `work` on the secrets also while a server uses the data directory, which it is then told of; without one, every server is
 * kept away meanwhile. One command after the other.
 */
export async function alsoWhileServed<T>(
  env: Environment,
  work: (config: Config, isServed: boolean) => T | Promise<T>,
): Promise<T> {
  const config = readConfig(env);
  process.umask(0o077);
  return withSecretsLocked(config.dataDir, async () => {
    const lock = lockUnlessServed(config.dataDir);
    try {
      return await work(config, lock === undefined);
    } finally {
      lock?.release();
    }
  });
}

function lockUnlessServed(dataDir: string): { release(): void } | undefined {
  try {
    return lockDataDir(dataDir);
  } catch (error) {
    if (error instanceof DataDirInUse) return undefined;
    throw error;
  }
}

function lockFor(dataDir: string): { release(): void } {
  try {
    return lockDataDir(dataDir);
  } catch (error) {
    if (!(error instanceof DataDirInUse)) throw error;
    throw new Error(`${error.message} Stop it first, and start it again afterwards.`, { cause: error });
  }
}

/**
 * Runs `work` on a connection of its own, on which changes can be audited.
 * @param dispensable secrets that `work` can do without
 */
export function withDatabase<T>(
  config: Config,
  work: (db: Database) => T | Promise<T>,
  ...dispensable: readonly Dispensable[]
): Promise<T> {
  const secrets = checked(config, ...dispensable);
  const auditKey = secrets === undefined ? {} : { auditKey: secrets.signingKey.key };
  const options = { busyTimeoutMs: BUSY_TIMEOUT_MS, ...auditKey };
  return whileOpen(openDatabase(databasePath(config.dataDir), options), work);
}

async function whileOpen<T>(db: Database, work: (db: Database) => T | Promise<T>): Promise<T> {
  try {
    return await work(db);
  } finally {
    db.close();
  }
}

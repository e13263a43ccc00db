import type { Actor } from '../admin/audit/audit-trail.ts';
import type { RuleWrite } from '../admin/rules/iam-rules.ts';
import { type Catalog, createCatalog } from '../catalog/catalog.ts';
import { type Config, readConfig } from '../config/config.ts';
import { servedProviders } from '../config/upstreams.ts';
import type { Pepper } from '../domain/id.ts';
import { type EncryptionKey, SANDBOX } from '../domain/provider.ts';
import { systemClock } from '../domain/time.ts';
import type { ServedRecord } from '../generated/types.ts';
import { checkDataDir, type Dispensable } from '../store/backup/check-data-dir.ts';
import { readServed, recordedProxies, servedModel } from '../store/bundles/served-record.ts';
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
  /** Providers and models that the server serves, by its record or this environment; read when first asked for. */
  readonly served: (against?: 'env') => Served;
  /** The installation of `served`. */
  readonly installation: () => Installation;
}

/** The installation by which access is judged. */
export interface Served {
  readonly installation: Installation;
  /** Null: the setting is unset. */
  readonly trustedProxies: Config['trustedProxies'];
  /** False: no server has said what it serves, and this environment names no provider. */
  readonly isKnown: boolean;
  /** A line of output that names the source. */
  readonly text: string;
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
      const served = (against?: 'env'): Served => servedIn(config, against);
      return work({
        db,
        now: systemClock.now(),
        actor: { kind: 'cli', organizationId: chooseOrganization(db, organizationId) },
        config,
        pepper: () => secretsOf(config).peppers[0],
        encryptionKey: () => secretsOf(config).encryptionKeys[0],
        catalog: () => served().installation.catalog,
        served,
        installation: () => served().installation,
      });
    },
    ...dispensable,
  );

/** The models that the configuration lets everyone call. */
export const installationOf = (config: Config): Installation => ({
  catalog: createCatalog({ ...config, clock: systemClock }),
  servedProviders: new Set(servedProviders(config)),
});

/**
 * Finds out what the server of the data directory serves: from the record of its last start, or from this environment if there is no
 * record or `against` asks for it. @throws Error for a record that cannot be read
 */
export function servedIn(config: Config, against?: 'env'): Served {
  const record = against === 'env' ? undefined : readServed(config.dataDir);
  if (record !== undefined) return recorded(record);
  const installation = installationOf(config);
  const isKnown = against === 'env' || config.upstreams.length > 0 || config.serviceProviders.length > 0;
  const why = against === 'env' ? '--against env' : 'no server has started on this DATA_DIR';
  const text = `Judged by this environment (${why}): ${servedText(installation)}.`;
  return { installation, trustedProxies: config.trustedProxies, isKnown, text };
}

function recorded(record: ServedRecord): Served {
  const { startedAt, catalogDate, sandbox, providers, upstreams } = record;
  const served = upstreams.map(({ name, models }) => ({ name, models: models.map(servedModel) }));
  const moved = providers.map(({ id, host }) => ({ id, baseUrl: host ?? undefined }));
  const installation: Installation = {
    catalog: createCatalog({ sandbox, upstreams: served, serviceProviders: moved, clock: systemClock }),
    servedProviders: new Set([
      ...(sandbox ? [SANDBOX] : []),
      ...upstreams.map(({ name }) => name),
      ...providers.filter(({ credential }) => credential).map(({ id }) => id),
    ]),
  };
  const { date } = installation.catalog;
  const other =
    date === catalogDate ? '' : ` This installation's catalogue is of ${date}, the server's of ${catalogDate}.`;
  const text = `Judged by what the server of ${startedAt} serves: ${servedText(installation)}.${other}`;
  return { installation, trustedProxies: recordedProxies(record), isKnown: true, text };
}

const servedText = ({ servedProviders: served }: Installation): string =>
  served.size === 0 ? 'no provider with a credential' : [...served].join(', ');

/** Refuses to judge for `--fail-on` against nothing. @throws Error that says what to do */
export function checkIsKnown({ isKnown }: Served): void {
  if (isKnown) return;
  throw new Error(
    'What the server serves is not known, so new access cannot be ruled out: no server has started on this DATA_DIR, and this environment names no provider. Start the server once, or set its UPSTREAM_… and …_API_KEY variables here and pass --against env.',
  );
}

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
export function ruleWriteOf({ now, served }: Workspace, against?: 'env'): RuleWrite {
  const { installation, trustedProxies } = served(against);
  return { now, catalog: installation.catalog, trustedProxies: trustedProxies ?? undefined };
}

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

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Actor } from '../../src/admin/audit/audit-trail.ts';
import { changeKey, createKey, disableKey } from '../../src/admin/keys/keys.ts';
import { createRule, deleteRule } from '../../src/admin/rules/iam-rules.ts';
import type { RuleOwner } from '../../src/admin/rules/rule-owner.ts';
import type { FirstRun } from '../../src/admin/sign-in/sign-in-links.ts';
import { createCatalog } from '../../src/catalog/catalog.ts';
import { type Config, readConfig } from '../../src/config/config.ts';
import { type Container, createContainer, type Overrides } from '../../src/container.ts';
import type { IamRule, KeyCreate, KeyRecord, RuleCreate } from '../../src/generated/types.ts';
import { databasePath } from '../../src/store/db/data-dir.ts';
import { type Database, openDatabase } from '../../src/store/db/database.ts';
import { loadSecrets } from '../../src/store/secrets/secrets.ts';
import { updateProject } from '../../src/store/tenants/tenants.ts';

type Environment = Readonly<Record<string, string>>;

/** A running product on free loopback ports, and a second connection to its database, as another process would have one. */
export interface TestGateway {
  readonly origin: string;
  readonly management: string;
  readonly dataDir: string;
  readonly config: Config;
  readonly container: Container;
  readonly firstRun: FirstRun;
  /** Of the first run's gateway key. */
  readonly keyId: string;
  readonly memberId: string;
  readonly db: Database;
  /** Stops the process's part and removes its data. */
  close(): Promise<void>;
}

/** Ports of its own, no log: what a test does not state must not matter. */
const QUIET: Environment = {
  PORT: '0',
  MANAGEMENT_PORT: '0',
  ACCESS_LOG: 'off',
  LOG_LEVEL: 'silent',
  CHECK_PROVIDERS: 'off',
};

export const newDataDir = (): string => mkdtempSync(path.join(tmpdir(), 'portcullis-test-'));

/** The configuration that `startGateway` uses, read as the real one is. */
export const testConfig = (dataDir: string, env: Environment = {}): Config =>
  readConfig({ ...QUIET, DATA_DIR: dataDir, ...env });

/** Starts on an empty data directory. Answers are not kept, so that equal requests are all dispatched, unless the test is about that. */
export async function startGateway(
  env: Environment = {},
  { caching = false, ...overrides }: Overrides & { readonly caching?: boolean } = {},
): Promise<TestGateway> {
  const dataDir = newDataDir();
  const config = testConfig(dataDir, env);
  const container = await createContainer(config, overrides);
  const { firstRun } = container;
  if (firstRun === undefined) throw new Error('an empty data directory gave no first run');
  const { signingKey } = loadSecrets(dataDir, { create: false });
  const db = openDatabase(databasePath(dataDir), { busyTimeoutMs: 5000, auditKey: signingKey.key });
  if (!caching) updateProject(db, firstRun.organizationId, firstRun.projectId, { cachingEnabled: false }, Date.now());
  const key = db.connection.prepare<[], { id: string; createdBy: string }>('SELECT id, createdBy FROM keys').get();
  if (key === undefined) throw new Error('the first run made no key');
  return {
    origin: container.gateway.origin,
    management: container.management.origin,
    dataDir,
    config,
    container,
    firstRun,
    keyId: key.id,
    memberId: key.createdBy,
    db,
    async close() {
      db.close();
      await container.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

const actorOf = ({ firstRun }: TestGateway): Actor => ({ kind: 'cli', organizationId: firstRun.organizationId });

export type RuleScope = 'key' | 'member' | 'organization';

export function ruleOwner(gateway: TestGateway, scope: RuleScope): RuleOwner {
  if (scope === 'organization') return { kind: 'organization' };
  return scope === 'key' ? { kind: 'key', key: gateway.keyId } : { kind: 'member', member: gateway.memberId };
}

/** Writes a rule while the gateway is running, with the function that the master API and the command line call. */
export function addRule(gateway: TestGateway, scope: RuleScope, rule: RuleCreate): IamRule {
  const { sandbox, upstreams, trustedProxies } = gateway.config;
  const now = Date.now();
  const world = {
    catalog: createCatalog({ sandbox, upstreams, clock: { now: () => now } }),
    trustedProxies: trustedProxies ?? undefined,
    now,
  };
  return createRule(gateway.db, actorOf(gateway), ruleOwner(gateway, scope), rule, world).rule;
}

export function removeRule(gateway: TestGateway, scope: RuleScope, id: string): void {
  deleteRule(gateway.db, actorOf(gateway), ruleOwner(gateway, scope), id, false, Date.now());
}

export interface TestKey {
  readonly id: string;
  readonly token: string;
}

/** One more key of the first project and member, or of those that are named. */
export function addKey(
  gateway: TestGateway,
  wanted: Partial<KeyCreate> = {},
  expiresAt: number | null = null,
  now = Date.now(),
): TestKey {
  const [pepper] = loadSecrets(gateway.dataDir, { create: false }).peppers;
  const body = { projectId: gateway.firstRun.projectId, createdBy: gateway.memberId, ...wanted };
  const { key } = createKey(gateway.db, actorOf(gateway), body, { now, pepper, expiresAt });
  if (key.token === undefined) throw new Error('a new key came without its secret');
  return { id: key.id, token: key.token };
}

export function tag(gateway: TestGateway, keyId: string, tags: string[]): KeyRecord {
  return changeKey(gateway.db, actorOf(gateway), keyId, { tags }, Date.now()).key;
}

export function disable(gateway: TestGateway, keyId: string): KeyRecord {
  return disableKey(gateway.db, actorOf(gateway), keyId, Date.now()).key;
}

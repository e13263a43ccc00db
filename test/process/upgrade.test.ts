// A start opens the databases of 0.2.0 and of every release since (test/fixtures/databases), brings them up to date and serves from them.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import BetterSqlite3 from 'better-sqlite3';
import { expect, it, onTestFinished } from 'vitest';
import { type Container, createContainer } from '../../src/container.ts';
import { verifyAuditChain } from '../../src/store/audit/audit-entries.ts';
import { databasePath } from '../../src/store/db/data-dir.ts';
import { openDatabase } from '../../src/store/db/database.ts';
import { MIGRATIONS, schemaVersion } from '../../src/store/migrations/migrate.ts';
import { loadSecrets } from '../../src/store/secrets/secrets.ts';
import { testConfig } from '../support/gateway.ts';
import { send } from '../support/request.ts';

const folder = path.join(import.meta.dirname, '../fixtures/databases');
const versions = readdirSync(folder).filter((name) => /^\d/.test(name));

/** Places of the master API, and what stands there in every fixture (make.ts). */
const STORED: Readonly<Record<string, readonly string[]>> = {
  members: ['owner@localhost'],
  projects: ['Default'],
  'master-keys': ['First master key'],
  keys: ['First gateway key', 'Limited', 'nightly'],
  invitations: ['new@gateway.example'],
  groups: ['research', 'Reads papers'],
  'organization/iam': ['A long rule', '"model-0","model-1"', 'model-199'],
  'tag-sets': ['sandbox-free', 'quick'],
  aliases: ['fast'],
  'provider-keys': ['Ours'],
  'custom-providers': ['https://models.example/v1'],
  'custom-models': ['own-model'],
  budgets: ['"usageLimit":"5"'],
  'calls?model=sandbox-paid': ['"outcome":"deny"', '"statusCode":403'],
  'calls?model=sandbox-free': ['"outcome":"permit"', '"statusCode":200'],
  decisions: ['deny_models'],
  audit: ['organization.create', 'custom_model.create'],
};

function install(version: string): { dataDir: string; masterKey: string; gatewayKey: string } {
  const dataDir = mkdtempSync(path.join(tmpdir(), 'portcullis-test-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  const stored = readFileSync(path.join(folder, version, 'portcullis.sqlite.gz'));
  writeFileSync(databasePath(dataDir), gunzipSync(stored), { mode: 0o600 });
  const { secrets, ...keys } = JSON.parse(readFileSync(path.join(folder, version, 'installation.json'), 'utf8'));
  writeFileSync(path.join(dataDir, 'secrets.json'), JSON.stringify(secrets), { mode: 0o600 });
  return { dataDir, ...keys };
}

async function faultsOf({ management }: Container, masterKey: string): Promise<string[]> {
  const faults: string[] = [];
  for (const [place, texts] of Object.entries(STORED)) {
    const headers = [['Authorization', `Bearer ${masterKey}`]] as const;
    const { text } = await send(management.origin, { path: `/v1/master/${place}`, headers });
    faults.push(...texts.filter((each) => !text.includes(each)).map((each) => `${place}: no ${each} in ${text}`));
  }
  return faults;
}

async function callStatus({ gateway }: Container, key: string, model: string): Promise<number> {
  const headers = [['Authorization', `Bearer ${key}`] as const, ['Content-Type', 'application/json'] as const];
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] });
  const { status } = await send(gateway.origin, { method: 'POST', path: '/v1/chat/completions', headers, body });
  return status;
}

const rowsOf = (connection: BetterSqlite3.Database): Readonly<Record<string, number>> =>
  Object.fromEntries(
    connection
      .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
      .pluck()
      .all()
      .map((name) => [name, Number(connection.prepare(`SELECT count(*) FROM ${name}`).pluck().get())]),
  );

it.each(versions)(
  'the database of %s opens whole, and its keys, rules, calls and audit log are those of then',
  async (version) => {
    const { dataDir, masterKey, gatewayKey } = install(version);
    const before = new BetterSqlite3(databasePath(dataDir), { readonly: true });
    expect(Object.entries(rowsOf(before)).filter(([, rows]) => rows === 0)).toEqual([]);
    before.close();

    const container = await createContainer(testConfig(dataDir));
    expect(container.firstRun).toBeUndefined();
    expect(await faultsOf(container, masterKey)).toEqual([]);
    expect([
      await callStatus(container, gatewayKey, 'sandbox-free'),
      await callStatus(container, gatewayKey, 'sandbox-paid'),
    ]).toEqual([200, 403]);
    await container.close();

    const db = openDatabase(databasePath(dataDir));
    onTestFinished(() => db.close());
    expect(schemaVersion(db.connection)).toBe(MIGRATIONS.length);
    expect(db.connection.pragma('integrity_check')).toEqual([{ integrity_check: 'ok' }]);
    expect(db.connection.pragma('foreign_key_check')).toEqual([]);
    const { signingKey } = loadSecrets(dataDir, { create: false });
    expect(verifyAuditChain(db, signingKey.key, undefined, () => {}).fault).toBeUndefined();
  },
);

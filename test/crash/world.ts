import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createKey } from '../../src/admin/keys.ts';
import { readConfig } from '../../src/config.ts';
import type { KeyCreate } from '../../src/generated/types.ts';
import { databasePath } from '../../src/store/data-dir.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { loadSecrets } from '../../src/store/secrets.ts';
import { build } from '../../src/store/sql.ts';
import { addOwnModels } from '../support/own-models.ts';
import { Serving } from './serving.ts';

/** A data directory that outlives the processes which serve it, and a second connection to its database. */
export interface World {
  readonly env: Readonly<Record<string, string>>;
  readonly db: Database;
  /** A key of the first project and member. */
  addKey(limits: Partial<KeyCreate>): { readonly id: string; readonly token: string };
  close(): void;
}

/** What a call costs: its tokens, and a fee; how much, the upstream says. */
const METERED = { maxOutput: 400, pricing: { prompt: '0.000001', completion: '0.00001', request: '0.001' } };

/** Starts a gateway once, on an empty directory, so that there is a database; gives it a model at the upstream. */
export async function createWorld(upstreamOrigin: string): Promise<World> {
  const dataDir = mkdtempSync(path.join(tmpdir(), 'portcullis-crash-'));
  const env = {
    DATA_DIR: dataDir,
    PORT: '0',
    MANAGEMENT_PORT: '0',
    ACCESS_LOG: 'off',
    LOG_LEVEL: 'silent',
    ALLOW_PRIVATE_UPSTREAMS: new URL(upstreamOrigin).host,
    RATE_LIMIT_CHAT_PER_MINUTE: '1000000',
  };
  const first = new Serving(env);
  await first.origin();
  await first.kill();

  const { peppers, signingKey } = loadSecrets(dataDir, { create: false });
  const db = openDatabase(databasePath(dataDir), { busyTimeoutMs: 5000, auditKey: signingKey.key });
  const key = db.get(build.selectFrom('keys').select(['organization_id', 'project_id', 'created_by']));
  if (key === undefined) throw new Error('the first run made no key');
  const organizationId = key.organization_id;
  const { allowPrivateUpstreams } = readConfig(env);
  addOwnModels(db, { organizationId }, upstreamOrigin, allowPrivateUpstreams, { metered: METERED });
  return {
    env,
    db,
    addKey(limits) {
      const body = { projectId: key.project_id, createdBy: key.created_by, ...limits };
      const made = createKey(db, { kind: 'cli', organizationId }, body, { now: Date.now(), pepper: peppers[0] }).key;
      if (made.token === undefined) throw new Error('a new key came without its secret');
      return { id: made.id, token: made.token };
    },
    close() {
      db.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

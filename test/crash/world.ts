import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createKey } from '../../src/admin/keys/keys.ts';
import { type BudgetOwner, changeBudget, getBudget } from '../../src/admin/tenants/budgets.ts';
import { createProject } from '../../src/admin/tenants/projects.ts';
import { readConfig } from '../../src/config/config.ts';
import { formatUsd, parseUsd } from '../../src/domain/limits.ts';
import type { BudgetPatch, KeyCreate } from '../../src/generated/types.ts';
import { databasePath } from '../../src/store/db/data-dir.ts';
import { type Database, openDatabase } from '../../src/store/db/database.ts';
import { build } from '../../src/store/db/sql.ts';
import { loadSecrets } from '../../src/store/secrets/secrets.ts';
import { addOwnModels } from '../support/own-models.ts';
import { Serving } from './serving.ts';

/** A data directory that outlives the processes which serve it, and a second connection to its database. */
export interface World {
  readonly env: Readonly<Record<string, string>>;
  readonly db: Database;
  /** A key of the first project and member. */
  addKey(limits: Partial<KeyCreate>): { readonly id: string; readonly token: string };
  /** Gives the budget of the second project so much more room, in USD; its id, to make keys in. */
  leaveRoom(amounts: { readonly total: string; readonly daily: string }): { readonly projectId: string };
  /** Sets or removes the budgets of the owner of all keys and of the organization, with room for everything. */
  limitEverything(on: boolean): void;
  close(): void;
}

/** What a call costs: its tokens, and a fee; how much, the upstream says. */
const METERED = { maxOutput: 400, pricing: { prompt: '0.000001', completion: '0.00001', request: '0.001' } };

const DAILY = { periodUsageDurationValue: 1, periodUsageDurationUnit: 'day' } as const;

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
  const key = db.get(build.selectFrom('keys').select(['organizationId', 'projectId', 'createdBy']));
  if (key === undefined) throw new Error('the first run made no key');
  const organizationId = key.organizationId;
  const { allowPrivateUpstreams } = readConfig(env);
  addOwnModels(db, { organizationId }, upstreamOrigin, allowPrivateUpstreams, { metered: METERED });
  const actor = { kind: 'cli', organizationId } as const;
  const { project } = createProject(db, actor, { name: 'Second' }, Date.now());
  const shared = { kind: 'project', project: project.id } as const;
  const limit = (owner: BudgetOwner, budget: BudgetPatch): void =>
    void changeBudget(db, actor, owner, budget, Date.now());
  return {
    env,
    db,
    leaveRoom({ total, daily }) {
      const { usage, currentPeriodUsage } = getBudget(db, actor, shared, Date.now()).budget;
      const plus = (spent: string | null, room: string): string => formatUsd(parseUsd(spent ?? '0') + parseUsd(room));
      limit(shared, {
        ...DAILY,
        usageLimit: plus(usage, total),
        periodUsageLimit: plus(currentPeriodUsage, daily),
      });
      return { projectId: shared.project };
    },
    limitEverything(on) {
      const enough = on ? '1000' : null;
      limit({ kind: 'member', member: key.createdBy }, { usageLimit: enough });
      limit({ kind: 'organization' }, { ...(on ? DAILY : {}), periodUsageLimit: enough });
    },
    addKey(limits) {
      const body = { projectId: key.projectId, createdBy: key.createdBy, ...limits };
      const made = createKey(db, actor, body, { now: Date.now(), pepper: peppers[0] }).key;
      if (made.token === undefined) throw new Error('a new key came without its secret');
      return { id: made.id, token: made.token };
    },
    close() {
      db.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { compileRules } from '../../src/admin/rules/rule-edits.ts';
import { createCatalog } from '../../src/catalog/catalog.ts';
import { readConfig } from '../../src/config/config.ts';
import { newId } from '../../src/domain/id.ts';
import { systemClock } from '../../src/domain/time.ts';
import type { RuleCreate } from '../../src/generated/types.ts';
import { databasePath } from '../../src/store/db/data-dir.ts';
import type { Database } from '../../src/store/db/database.ts';
import { insertRule } from '../../src/store/rules/rules.ts';
import { loadSecrets } from '../../src/store/secrets/secrets.ts';
import { createStore } from '../../src/store/store.ts';
import { insertKey } from '../../src/store/tenants/key-records.ts';
import { insertMember } from '../../src/store/tenants/member-records.ts';
import { listOrganizations, listProjects } from '../../src/store/tenants/tenants.ts';
import { readWorld, type World } from '../../src/workbench/world/world.ts';
import { worldDocument } from '../../src/workbench/world/world-document.ts';
import { fillDecisions } from './analysis-decisions.ts';

export const KEYS = 1000;
export const MODELS = 500;
export const MAPPINGS = 700;
const MEMBERS = 50;
/** Five upstreams serve a hundred models each, two more serve the first two hundred again. */
const MODELS_PER_UPSTREAM = 100;

const model = (number: number): string => `model-${String(number % MODELS).padStart(3, '0')}`;

/** The environment's variables that make the catalogue, at this origin. */
export function catalogueVariables(origin: string): Record<string, string> {
  const variables: Record<string, string> = { SANDBOX: 'off' };
  // The benchmark's own provider serves one model more.
  for (let upstream = 0; upstream < MAPPINGS / MODELS_PER_UPSTREAM; upstream += 1) {
    const models = Array.from({ length: MODELS_PER_UPSTREAM }, (_, index) =>
      model(upstream * MODELS_PER_UPSTREAM + index),
    );
    const prefix = `UPSTREAM_P${upstream}`;
    variables[`${prefix}_BASE_URL`] = `${origin}/v1`;
    variables[`${prefix}_MODELS`] = models.join(',');
    variables[`${prefix}_PRICES`] = models.map((id, index) => `${id}=${index % 20}/${index % 40}`).join(',');
  }
  return variables;
}

/** Six rules that no other subject has, each of which decides something. */
function rulesOf(number: number): RuleCreate[] {
  const some = (count: number, step: number): string[] =>
    Array.from({ length: count }, (_, index) => model(number * 7 + index * step));
  const range = (block: number): string => `${block}.${number >> 8}.${number & 255}.0/24`;
  return [
    { ruleType: 'deny_models', ruleValue: { models: some(10, 13) } },
    { ruleType: 'allow_models', ruleValue: { models: ['model-*', ...some(20, 11)] } },
    { ruleType: 'deny_providers', ruleValue: { providers: [`p${number % 7}`, 'another'] } },
    { ruleType: 'allow_pricing', ruleValue: { maxInputPrice: `${10 + (number % 10)}.${number}` } },
    { ruleType: 'allow_ip_cidrs', ruleValue: { ipCidrs: ['10.0.0.0/8', range(11), '2001:db8::/32'] } },
    { ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: [range(10)] } },
  ];
}

function insertRules(db: Database, organizationId: string, subjectId: string, number: number, now: number): void {
  for (const { ruleType, ruleValue } of rulesOf(number)) {
    const rule = { id: newId('rule'), ruleType, ruleValue, description: null };
    insertRule(db, organizationId, subjectId, { ...rule, mode: 'enforce', status: 'active' }, compileRules, now);
  }
}

function fill(db: Database, now: number, pepperId: string): void {
  const [organization] = listOrganizations(db);
  const [project] = organization === undefined ? [] : listProjects(db, organization.id, { limit: 1 }).items;
  if (organization === undefined || project === undefined) throw new Error('the gateway made no organization');
  const organizationId = organization.id;
  const members = Array.from({ length: MEMBERS }, (_, index) => {
    const member = { id: newId('mem'), organizationId, email: `m${index}@example.test`, name: null };
    insertMember(db, { ...member, role: 'developer', passwordHash: null }, now);
    insertRules(db, organizationId, member.id, KEYS + index, now);
    return member.id;
  });
  for (let number = 0; number < KEYS; number += 1) {
    const id = newId('key');
    const limits = { usageLimit: null, periodUsageLimit: null, periodUsageDurationValue: null };
    insertKey(
      db,
      {
        ...limits,
        id,
        organizationId,
        projectId: project.id,
        createdBy: members[number % MEMBERS] ?? '',
        description: `bench ${number}`,
        kind: 'regular',
        secretHash: id,
        pepperId,
        mask: 'pcl_none',
        expiresAt: null,
        periodUsageDurationUnit: null,
      },
      now,
    );
    insertRules(db, organizationId, id, number, now);
  }
}

/** Every key's first deny rule names one model less and another one more. */
const changedWorld = (world: World): World => ({
  ...world,
  keys: new Map(
    [...world.keys].map(([id, key], number) => [
      id,
      {
        ...key,
        rules: key.rules.map((rule) =>
          rule.ruleType === 'deny_models' && 'models' in rule.ruleValue
            ? { ...rule, ruleValue: { models: [...rule.ruleValue.models.slice(1), model(number * 3 + 1)] } }
            : rule,
        ),
      },
    ]),
  ),
});

/**
 * Fills the database of a gateway that runs: a thousand keys of fifty members, each with six rules of its own, and a log of decisions.
 * @returns two exports: as it is, and with a changed rule of every key; and when the log ends
 */
export async function fillWorld(
  dataDir: string,
  variables: Readonly<Record<string, string>>,
): Promise<{ before: string; after: string; loggedTo: string }> {
  const store = createStore({ path: databasePath(dataDir), clock: systemClock, busyTimeoutMs: 5000 });
  try {
    const [pepper] = loadSecrets(dataDir, { create: false }).peppers;
    await store.write((db, now) => fill(db, now, pepper.id));
    const { upstreams, sandbox } = readConfig({ ...variables, DATA_DIR: dataDir });
    const catalog = createCatalog({ sandbox, upstreams, clock: systemClock });
    const world = await store.read((db) => readWorld(db, { catalog, servedProviders: new Set() }));
    const loggedTo = await fillDecisions(store, world);
    const folder = path.join(dataDir, 'exports');
    mkdirSync(folder);
    const files = { before: path.join(folder, 'before.json'), after: path.join(folder, 'after.json') };
    writeFileSync(files.before, JSON.stringify(worldDocument(world)));
    writeFileSync(files.after, JSON.stringify(worldDocument(changedWorld(world))));
    return { ...files, loggedTo };
  } finally {
    store.close();
  }
}

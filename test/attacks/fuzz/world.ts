// The product as its users run it, on a fresh directory, and three organizations: one that is attacked and judged, one whose callers
// must not suffer, and one that belongs to an attacker.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { acceptInvitation } from '../../../src/admin/sign-in/accept-invitation.ts';
import { startSession } from '../../../src/admin/sign-in/sessions.ts';
import { createOrganization, type Tenant } from '../../../src/admin/tenants/organizations.ts';
import { isRecord, record } from '../../../src/providers/wire/fields.ts';
import { databasePath } from '../../../src/store/db/data-dir.ts';
import { type Database, openDatabase } from '../../../src/store/db/database.ts';
import { loadSecrets } from '../../../src/store/secrets/secrets.ts';
import { Serving } from '../../crash/serving.ts';
import { send } from '../../support/request.ts';
import { BUDGET, KEYS, type KeySpec, OPEN, ORGANIZATION_RULE, WORKER_RULE } from './keys.ts';
import type { Secrets } from './secrets.ts';
import { OF_ORGANIZATION, UPSTREAMS } from './served.ts';
import { environment, secretOf } from './settings.ts';
import { startUpstream, type Upstream, type Watch } from './upstreams.ts';

export interface WorldKey {
  readonly spec: KeySpec;
  readonly id: string;
  readonly token: string;
}

export interface World {
  readonly db: Database;
  readonly secrets: Secrets;
  serving: Serving;
  gateway: string;
  management: string;
  /** Of the attacked organization. */
  readonly keys: readonly [WorldKey, ...WorldKey[]];
  /** A key of the attacked organization that is forbidden and permitted while the run goes on. */
  readonly toggled: WorldKey;
  readonly attacked: Tenant;
  /** Id of the attacked organization's project that has a budget. */
  readonly budgeted: string;
  /** Of the second organization, whose calls must go well. */
  readonly bystander: { readonly tenant: Tenant; readonly token: string };
  readonly attacker: { readonly tenant: Tenant; readonly key: WorldKey };
  /** Begins a session of the attacker's owner. @returns the value of its cookie */
  signIn(): string;
  /** Starts the product again, after a kill. */
  restart(): Promise<void>;
  /** Connections that left this machine, or tried to. */
  departures(): readonly string[];
  close(): Promise<void>;
}

/** What an administrator of the organization asks for. @throws Error for a refusal */
type Ask = (method: string, path: string, body?: object) => Promise<Readonly<Record<string, unknown>>>;

const asks =
  (management: string, token: string): Ask =>
  async (method, path, body) => {
    const answer = await send(management, {
      method,
      path: `/v1/master/${path}`,
      headers: [
        ['authorization', `Bearer ${token}`],
        ['content-type', 'application/json'],
      ],
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (answer.status >= 300 || !isRecord(answer.json))
      throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
    return answer.json;
  };

const textIn = (value: unknown, field: string): string => {
  const { [field]: text } = record(value);
  if (typeof text !== 'string') throw new Error(`no ${field} in ${JSON.stringify(value)}`);
  return text;
};

async function addKey(
  ask: Ask,
  secrets: Secrets,
  projectId: string,
  spec: KeySpec,
  createdBy?: string,
): Promise<WorldKey> {
  const body = { projectId, description: spec.name, ...spec.limits, ...(createdBy === undefined ? {} : { createdBy }) };
  const { key } = await ask('POST', 'keys', body);
  const id = textIn(key, 'id');
  for (const rule of spec.rules ?? []) await ask('POST', `keys/${id}/iam`, rule);
  const token = textIn(key, 'token');
  secrets.add(token, `the gateway key "${spec.name}"`);
  return { spec, id, token };
}

async function addProviders(ask: Ask, upstreams: ReadonlyMap<string, Upstream>, secrets: Secrets): Promise<void> {
  for (const [provider, models] of Object.entries(OF_ORGANIZATION)) {
    const wire = UPSTREAMS[provider];
    const keyless = wire === 'openai';
    const { customProvider } = await ask('POST', 'custom-providers', {
      name: provider,
      wire,
      baseUrl: `${upstreams.get(provider)?.origin}/v1`,
      keyless,
    });
    if (!keyless) await addCredential(ask, secrets, `custom:${provider}`, provider);
    for (const [model, [input, output]] of Object.entries(models)) {
      const pricing = { prompt: String(input / 1e6), completion: String(output / 1e6), request: '0.0001' };
      const price = Object.fromEntries(Object.entries(pricing).map(([name, usd]) => [name, Number(usd).toFixed(12)]));
      await ask('POST', 'custom-models', {
        customProviderId: textIn(customProvider, 'id'),
        model,
        maxOutput: 400,
        tools: true,
        pricing: price,
      });
    }
  }
  await addCredential(ask, secrets, 'openai', 'openai');
}

async function addCredential(ask: Ask, secrets: Secrets, provider: string, upstream: string): Promise<void> {
  const token = secretOf(`byok-${upstream}`);
  secrets.add(token, upstream);
  await ask('POST', 'provider-keys', { provider, label: `Ours at ${upstream}`, token });
}

export async function createWorld(
  watch: Watch,
  secrets: Secrets,
  probeOrigin: string,
  hear: (log: string) => void,
): Promise<World> {
  const upstreams = new Map<string, Upstream>();
  for (const [provider, wire] of Object.entries(UPSTREAMS))
    upstreams.set(provider, await startUpstream(provider, wire, watch));
  const dataDir = mkdtempSync(path.join(tmpdir(), 'portcullis-attack-'));
  const guardLog = path.join(dataDir, 'departures.log');
  const env = environment(upstreams, secrets, { dataDir, guardLog, probeOrigin });
  let isHeard = false; // the first start shows secrets
  const start = (): Serving => new Serving(env, (text) => isHeard && hear(text));
  const serving = start();
  const { gateway, management } = await serving.origins();
  const { peppers, signingKey } = loadSecrets(dataDir, { create: false });
  const db = openDatabase(databasePath(dataDir), { busyTimeoutMs: 5000, auditKey: signingKey.key });
  const tenant = (name: string): Tenant => {
    const made = createOrganization(
      db,
      { name, ownerEmail: `owner@${name}.example` },
      { now: Date.now(), pepper: peppers[0] },
    );
    secrets.add(made.masterKey.token, `the master key of ${name}`);
    return made;
  };
  const [attacked, bystander, attacker] = [tenant('attacked'), tenant('bystander'), tenant('attacker')];

  const ask = asks(management, attacked.masterKey.token);
  await addProviders(ask, upstreams, secrets);
  await ask('POST', 'organization/iam', ORGANIZATION_RULE);
  const { invitation } = await ask('POST', 'invitations', { email: 'worker@attacked.example', role: 'developer' });
  const { member } = acceptInvitation(
    db,
    { token: textIn(invitation, 'token') },
    { now: Date.now(), peppers, by: 'cli' },
  );
  await ask('POST', `members/${member.id}/iam`, WORKER_RULE);
  const budgeted = textIn((await ask('POST', 'projects', { name: 'Budgeted' })).project, 'id');
  await ask('PATCH', `projects/${budgeted}/budget`, BUDGET);
  const newKey = (spec: KeySpec): Promise<WorldKey> => {
    const projectId = spec.hasBudget === true ? budgeted : attacked.project.id;
    return addKey(ask, secrets, projectId, spec, spec.owner === 'worker' ? member.id : undefined);
  };
  const keys: [WorldKey, ...WorldKey[]] = [await newKey(OPEN)];
  for (const spec of KEYS.slice(1)) keys.push(await newKey(spec));
  const toggled = await newKey({ ...OPEN, name: 'toggled' });
  const spare: KeySpec = { ...OPEN, name: 'of another organization', isForeign: true };
  const probeKey = await addKey(asks(management, bystander.masterKey.token), secrets, bystander.project.id, spare);
  const attackerKey = await addKey(asks(management, attacker.masterKey.token), secrets, attacker.project.id, spare);
  isHeard = true;

  const world: World = {
    db,
    secrets,
    serving,
    gateway,
    management,
    keys,
    toggled,
    attacked,
    budgeted,
    bystander: { tenant: bystander, token: probeKey.token },
    attacker: { tenant: attacker, key: attackerKey },
    signIn: () =>
      startSession(db, { ...attacker.owner, organizationId: attacker.organization.id }, 'link', {
        now: Date.now(),
        pepper: peppers[0],
      }).secret,
    async restart() {
      world.serving = start();
      Object.assign(world, await world.serving.origins());
    },
    departures() {
      try {
        return readFileSync(guardLog, 'utf8').trimEnd().split('\n');
      } catch {
        return []; // nothing has tried
      }
    },
    async close() {
      await world.serving.kill();
      db.close();
      for (const upstream of upstreams.values()) await upstream.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
  return world;
}

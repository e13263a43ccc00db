import { randomBytes } from 'node:crypto';
import type { Command } from 'commander';
import { type Config, readConfig } from '../config/config.ts';
import {
  type Access,
  type AccessCheck,
  checkAccess,
  environmentAccesses,
  ownAccesses,
} from '../core/check-providers.ts';
import type { Pepper } from '../domain/id.ts';
import { createTransport } from '../net/transport.ts';
import { createProviders, type Providers } from '../providers/providers.ts';
import { hasDatabase } from '../store/db/data-dir.ts';
import { prepareOrganizationProviders } from '../store/providers/organization-providers.ts';
import { type CommonOptions, common } from './terminal/options.ts';
import { type Cell, free, printJson, printTable } from './terminal/output.ts';
import { type Environment, inWorkspace, secretsOf } from './workspace.ts';

const HELP = `
Each credential is tried once, with a request that costs nothing: the list of models, or a chat that every server refuses. This command
asks the providers itself, with the settings of its own environment: run it with the server's. The server need not run.
Exit code 1: something does not work.`;

interface Checked {
  readonly access: Access;
  readonly result: AccessCheck;
}

/** For one answer. */
const LIMIT_MS = 15_000;
/** Tried at once. */
const AT_ONCE = 8;

/** `portcullis providers check`. */
export function providersCommands(program: Command, env: Environment): void {
  const providers = program.command('providers').description('Look whether the providers can be called.');
  common(providers.command('check [name]'))
    .description(
      'Try each credential at its provider: those of the environment, and the provider keys of the organization.',
    )
    .addHelpText('after', HELP)
    .action(async (name: string | undefined, options: CommonOptions) => {
      const config = readConfig(env);
      const all = await findAccesses(env, config, options.org);
      const wanted = all.filter(
        ({ provider, source }) => name === undefined || name === provider.id || name === source,
      );
      if (name !== undefined && wanted.length === 0) {
        throw new Error(`There is no credential for a provider "${name}", and none with that label.`);
      }
      const checked = await checkAll(config, wanted);
      show(checked, options);
      const failed = checked.filter(({ result }) => result.cause !== undefined).length;
      if (failed > 0) throw new Error(`${failed} of ${checked.length} credentials do not work.`);
    });
}

/** Before the first start there is no database: then those of the environment alone. */
async function findAccesses(env: Environment, config: Config, org: string | undefined): Promise<Access[]> {
  const providersWith = (pepper: Pepper): Providers => {
    const { upstreams, serviceProviders } = config;
    return createProviders({ upstreams, serviceProviders, pepper });
  };
  if (!hasDatabase(config.dataDir)) {
    return environmentAccesses(config, providersWith({ id: 'none', key: randomBytes(32) }));
  }
  return inWorkspace(
    env,
    'read',
    org,
    ({ db, actor }) => {
      const { peppers, encryptionKeys } = secretsOf(config);
      const providers = providersWith(peppers[0]);
      const own = prepareOrganizationProviders(db)(actor.organizationId);
      return [...environmentAccesses(config, providers), ...ownAccesses(own, providers, encryptionKeys)];
    },
    'encryption key',
  );
}

async function checkAll(config: Config, accesses: readonly Access[]): Promise<Checked[]> {
  const transport = createTransport({
    connectTimeoutMs: Math.min(config.timeouts.connect, LIMIT_MS),
    firstByteTimeoutMs: LIMIT_MS,
    idleTimeoutMs: LIMIT_MS,
    totalTimeoutMs: LIMIT_MS,
    maxResponseBytes: config.limits.responseBytes,
    parseLarge: () => Promise.reject(new Error('nothing is streamed')),
    privateExceptions: config.allowPrivateUpstreams,
  });
  try {
    const checked: Checked[] = [];
    for (let at = 0; at < accesses.length; at += AT_ONCE) {
      const some = accesses.slice(at, at + AT_ONCE);
      const results = await Promise.all(some.map((access) => checkAccess(transport, access, LIMIT_MS)));
      checked.push(
        ...some.flatMap((access, place) => {
          const result = results[place];
          return result === undefined ? [] : [{ access, result }];
        }),
      );
    }
    return checked;
  } finally {
    await transport.close();
  }
}

function show(checked: readonly Checked[], { json, ...format }: CommonOptions): void {
  const rows = checked.map(({ access: { provider, source }, result }) => ({
    provider: provider.id,
    credential: source,
    address: `${provider.base.origin}${provider.base.path}`,
    works: result.cause === undefined,
    cause: result.cause ?? null,
    explanation: result.explanation ?? null,
    durationMs: result.durationMs,
  }));
  if (json) {
    printJson({ checks: rows });
    return;
  }
  printTable(
    ['PROVIDER', free('CREDENTIAL'), 'RESULT', 'MS', free('ADDRESS'), free('WHY')],
    rows.map((row): Cell[] => [
      { text: row.provider },
      { text: row.credential },
      row.works ? { text: 'works', colour: 'green' } : { text: row.cause ?? '', colour: 'red' },
      { text: String(row.durationMs) },
      { text: row.address },
      { text: row.explanation ?? '-' },
    ]),
    'No provider has a credential: set one such as OPENAI_API_KEY, or add a provider key.',
    format,
  );
}

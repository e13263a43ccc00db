import type { FirstRun } from './admin/sign-in/sign-in-links.ts';
import { type Config, readConfig, settingHints } from './config/config.ts';
import { reloadOf, type Variables, withEnvFile } from './config/variables.ts';
import { type Container, createContainer } from './container.ts';
import { signInUrl } from './domain/identity.ts';
import { RELOAD_SIGNAL } from './store/secrets/serving.ts';

const SHOWN_ONCE = 'These secrets are shown once, now. Keep them.';

/** Text of a first start: the secrets, and a command that works as pasted. */
function welcome({ gateway }: Container, { publicUrl }: Config, first: FirstRun): string {
  const body = JSON.stringify({ model: 'sandbox-paid', messages: [{ role: 'user', content: 'Hello' }] });
  return `
First run: an organization, a project, their owner (${first.ownerEmail}) and two keys were created.
${SHOWN_ONCE}

  gateway key  ${first.gatewayKey}
  master key   ${first.masterKey}

Sign in as the owner, once within 24 hours, and set a password:

  ${signInUrl(publicUrl ?? gateway.origin, first.signInToken)}

Try it:

  curl -s ${gateway.origin}/v1/chat/completions \\
    -H 'authorization: Bearer ${first.gatewayKey}' \\
    -H 'content-type: application/json' \\
    -d '${body}'
`;
}

const DEBUG_WARNING =
  '  log         LOG_LEVEL=debug writes the words with which providers explain failures: they can quote prompts.\n';

/**
 * Text of a start: the listeners' addresses, and the providers that can be called: a missing credential shows here, not at the
 * first call.
 */
function greeting({ build, gateway, management, providers }: Container, { logLevel }: Config): string {
  const width = Math.max(0, ...providers.map(({ name }) => name.length));
  const lines = providers.map(({ name, credential }) => `${name.padEnd(width)}  ${credential}`);
  const { version, commit, schema } = build;
  return `Portcullis ${version} (commit ${commit}, schema ${schema}) is running.
  gateway     ${gateway.origin}
  management  ${management.origin}
  providers   ${lines.join(`\n${' '.repeat(14)}`) || 'none: nothing can be called until one has a credential'}
${logLevel === 'debug' ? DEBUG_WARNING : ''}`;
}

/**
 * Reads `ENV_FILE` and the server's secrets again at each signal, one after the other, once the server runs. A fault there
 * changes nothing, and the log names it in one line.
 */
function reloadOnSignal(given: Variables, started: Promise<Container>): void {
  let env = withEnvFile(given);
  let last: Promise<unknown> = started;
  const reload = (signal: NodeJS.Signals): void => {
    last = last.then(async () => {
      const container = await started;
      env = (await container.reload(signal, () => reloadOf(env, withEnvFile(given)))) ?? env;
    });
  };
  process.on(RELOAD_SIGNAL, reload);
  if (!process.stdin.isTTY) process.on('SIGHUP', reload);
}

/** Resolves with the name of the first signal that asks the process to stop; the second one ends it at once. */
function stopRequested(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let asked = false;
    const ask = (signal: NodeJS.Signals): void => {
      if (asked) process.exit(signal === 'SIGINT' ? 130 : 143);
      asked = true;
      resolve(signal);
    };
    process.on('SIGTERM', ask);
    process.on('SIGINT', ask);
    // A terminal that is closed sends it too.
    if (process.stdin.isTTY) process.on('SIGHUP', ask);
  });
}

/**
 * Serves until a signal: then stops accepting, finishes what runs, settles, closes.
 * @throws ConfigError for a wrong variable, and whatever keeps it from starting
 */
export async function serve(env: Readonly<Record<string, string | undefined>>): Promise<void> {
  const stop = stopRequested();
  // Database, secrets and logs are the owner's alone, in a data directory that others may enter too.
  process.umask(0o077);
  for (const hint of settingHints(withEnvFile(env))) process.stderr.write(`portcullis: warning: ${hint}\n`);
  const config = readConfig(env);
  const { promise: started, resolve } = Promise.withResolvers<Container>();
  reloadOnSignal(env, started);
  const container = await createContainer(config);
  resolve(container);
  process.stdout.write(greeting(container, config));
  if (container.firstRun !== undefined) process.stdout.write(`${welcome(container, config, container.firstRun)}\n`);
  const signal = await stop;
  process.stdout.write(`${signal}: finishing what runs.\n`);
  await container.close();
}

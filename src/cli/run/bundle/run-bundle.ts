import { readFileSync, writeFileSync } from 'node:fs';
import { recordServerChange } from '../../admin/audit/server-changes.ts';
import { type Config, readConfig } from '../../config/config.ts';
import { formatTime, systemClock } from '../../domain/time.ts';
import type { BundleEvent, BundleState, KnownBundle } from '../../generated/types.ts';
import { readBundle } from '../../policy/bundle.ts';
import { readBundleState, rolledBack, writeBundleState } from '../../store/bundles/bundle-files.ts';
import { buildBundle } from '../../workbench/bundles/build-bundle.ts';
import { readTrust } from '../../workbench/bundles/read-trust.ts';
import { tryBundle } from '../../workbench/bundles/try-bundle.ts';
import { print, printJson, printTable } from '../terminal/output.ts';
import { type Environment, inDatabase } from './workspace.ts';

export interface BundleOptions {
  readonly json?: true;
}

export interface BuildCommandOptions extends BundleOptions {
  readonly output: string;
  readonly revision?: string;
  readonly signingKey?: string;
  readonly signingAlg?: string;
}

/** `portcullis policy bundle status`. */
export function showBundleStatus(env: Environment, { json }: BundleOptions): void {
  const config = readConfig(env);
  if (config.policyBundle === undefined) {
    const { digest } = readBundle();
    if (json) printJson({ installation: { digest } });
    else print(`The policy of this installation is in force: ${digest.slice(0, 12)}. POLICY_BUNDLE is not set.`);
    return;
  }
  const state = stateOf(config);
  if (json) {
    printJson(state);
    return;
  }
  print(`in force  ${bundleText(state.active)}`);
  if (state.previous !== undefined) print(`before    ${bundleText(state.previous)}`);
  if (state.held !== undefined)
    print('The one before was left by a rollback, and is held off until the source has another one.');
  print('');
  printTable(['TIME', 'WHAT', 'REVISION', 'ARCHIVE', 'REASON'], state.history.map(row), 'Nothing was offered.');
}

/** `portcullis policy bundle check`. @throws BundleRefused */
export async function checkBundle(env: Environment, file: string, { json }: BundleOptions): Promise<void> {
  const { policyBundle } = readConfig(env);
  const trust = readTrust(policyBundle);
  const { digest, revision } = await tryBundle({ kind: 'archive', archive: readFileSync(file), trust });
  if (json) printJson({ digest, revision: revision ?? null });
  else print(`${file} may serve: ${revision ?? 'no revision'} (policy ${digest.slice(0, 12)}).`);
}

/** `portcullis policy build`: what would be refused is not written. @throws Error with what `opa` said, BundleRefused */
export async function buildAndTry(folder: string, options: BuildCommandOptions): Promise<void> {
  const { output, signingKey, signingAlg, json } = options;
  const revision = options.revision ?? formatTime(systemClock.now());
  const unsigned = buildBundle(folder, { revision });
  const { digest } = await tryBundle({ kind: 'archive', archive: unsigned, trust: readTrust(undefined) });
  const signing = {
    ...(signingKey === undefined ? {} : { signingKey }),
    ...(signingAlg === undefined ? {} : { signingAlg }),
  };
  writeFileSync(output, signingKey === undefined ? unsigned : buildBundle(folder, { revision, ...signing }));
  if (json) printJson({ output, digest, revision, signed: signingKey !== undefined });
  else
    print(`Wrote ${output}: ${revision} (policy ${digest.slice(0, 12)})${signingKey === undefined ? '' : ', signed'}.`);
}

/** `portcullis policy bundle rollback`, which the audit log has. @throws Error where there is nothing to go back to */
export async function rollBackBundle(env: Environment, { json }: BundleOptions): Promise<void> {
  const { active } = await inDatabase(env, 'write', (db, config) => {
    const now = systemClock.now();
    const before = stateOf(config);
    const after = rolledBack(before, formatTime(now));
    const change = { before: { id: before.active.digest }, after: { id: after.active.digest } };
    recordServerChange(db, 'policy_bundle', 'rollback', change, now);
    writeBundleState(config.dataDir, after);
    return after;
  });
  if (json) printJson({ active });
  else print(`In force: ${bundleText(active)}`);
}

function stateOf({ dataDir }: Config): BundleState {
  const state = readBundleState(dataDir);
  if (state === undefined) throw new Error('No bundle has been in force yet: start the server once.');
  return state;
}

const bundleText = ({ revision, digest, activatedAt, source }: KnownBundle): string =>
  `${revision ?? 'no revision'} (policy ${digest.slice(0, 12)}), since ${activatedAt}, from ${source}`;

const COLOURS = { activated: 'green', refused: 'red', rolled_back: 'yellow' } as const;

const row = ({ at, what, revision, archive, message }: BundleEvent) => [
  { text: at },
  { text: what.replace('_', ' '), colour: COLOURS[what] },
  { text: revision ?? '-' },
  { text: archive.slice(0, 12) },
  { text: message ?? '-' },
];

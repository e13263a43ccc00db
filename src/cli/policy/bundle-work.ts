import { readFileSync } from 'node:fs';
import { recordServerChange } from '../../admin/audit/audit-trail.ts';
import { readConfig } from '../../config/config.ts';
import { formatTime, systemClock } from '../../domain/time.ts';
import type { BundleEvent, KnownBundle, SignedAs } from '../../generated/types.ts';
import { type PolicyBundle, readBundle } from '../../policy/bundle.ts';
import { createPdp } from '../../policy/pdp.ts';
import { deniesCall } from '../../policy/self-test.ts';
import { rolledBack, standingIn, writeBundleState } from '../../store/bundles/bundle-files.ts';
import { readTrust } from '../../workbench/bundles/bundle-source.ts';
import { tryBundle } from '../../workbench/bundles/try-bundle.ts';
import { print, printJson, printTable, warn } from '../terminal/output.ts';
import { type Environment, inDatabase } from '../workspace.ts';

export interface BundleOptions {
  readonly json?: true;
}

/** `portcullis policy bundle status`. */
export function showBundleStatus(env: Environment, { json }: BundleOptions): void {
  const config = readConfig(env);
  const standing = standingIn(config.dataDir);
  if ('installation' in standing) {
    const { since } = standing.installation;
    if (since === undefined && config.policyBundle !== undefined) throw new Error(NO_BUNDLE_YET);
    const { digest } = readBundle();
    if (json) printJson({ installation: { digest, ...standing.installation } });
    else print(`The policy of this installation is in force: ${digest.slice(0, 12)}${sinceText(since)}`);
    return;
  }
  const state = standing.bundle;
  if (json) {
    printJson(state);
    return;
  }
  const { active, previous, held, refusal } = state;
  print(`in force  ${knownText(active)}, ${held === undefined ? `from ${active.source}` : 'by a rollback'}`);
  if (previous !== undefined) print(`before    ${knownText(previous)}, from ${previous.source}`);
  if (refusal !== undefined) print(`refused   ${refusal.code}, since ${refusal.at}: ${refusal.message}`);
  if (held !== undefined) print('The gateway ignores the bundle you left until the source offers a third one.');
  print('');
  printTable(['TIME', 'WHAT', 'REVISION', 'ARCHIVE', 'REASON'], state.history.map(row), 'Nothing was offered.');
}

/** `portcullis policy bundle check`. @throws BundleRefused, UsageError */
export async function checkBundle(env: Environment, file: string, { json }: BundleOptions): Promise<void> {
  const trust = readTrust(readConfig(env).bundleTrust);
  const bundle = await tryBundle({ archive: readFileSync(file), trust });
  const { digest, revision, signedAs } = bundle;
  warnIfClosed(bundle);
  if (json) printJson({ digest, revision: revision ?? null, ...statedNumber(signedAs) });
  else print(`${file} is valid: ${revision ?? 'no revision'} (policy ${digest.slice(0, 12)}${numberText(signedAs)}).`);
}

/** A policy may mean to deny the call of the self-test, which is of no model that is there; one that denies all does too. */
export function warnIfClosed(bundle: PolicyBundle): void {
  const pdp = createPdp(bundle);
  const isClosed = deniesCall(pdp);
  pdp.close();
  if (isClosed) {
    warn(
      'warning: package custom denies the call of the self-test, which no rule denies (a chat with acme/swift-1 from 192.0.2.1, without input.facts): make sure that it does not deny every call.',
    );
  }
}

/** `portcullis policy bundle rollback`, which the audit log has. @throws Error where there is nothing to go back to */
export async function rollBackBundle(env: Environment, { json }: BundleOptions): Promise<void> {
  const { active } = await inDatabase(env, 'write', (db, config) => {
    const now = systemClock.now();
    const standing = standingIn(config.dataDir);
    if ('installation' in standing) {
      const { since } = standing.installation;
      throw new Error(
        since === undefined ? NO_BUNDLE_YET : `The policy of this installation is in force${sinceText(since)}`,
      );
    }
    const after = rolledBack(standing.bundle, formatTime(now));
    const change = { before: audited(standing.bundle.active), after: audited(after.active) };
    recordServerChange(db, 'policy_bundle', 'rollback', change, now);
    writeBundleState(config.dataDir, after);
    return after;
  });
  if (json) printJson({ active });
  else print(`In force: ${knownText(active)}.`);
}

/** As the audit log has it: two revisions may have one digest. */
const audited = ({ digest, revision }: KnownBundle) => ({ id: digest, revision });

const NO_BUNDLE_YET = 'No bundle has been in force yet: start the server once.';

const sinceText = (since: string | undefined): string =>
  since === undefined
    ? '. POLICY_BUNDLE is not set.'
    : `, since ${since}: the server was last started without POLICY_BUNDLE.`;

const knownText = ({ revision, digest, activatedAt, signedAs }: KnownBundle): string =>
  `${revision ?? 'no revision'} (policy ${digest.slice(0, 12)}${numberText(signedAs)}), since ${activatedAt}`;

const statedNumber = (signedAs: SignedAs | undefined): Partial<SignedAs> =>
  signedAs === undefined || signedAs.number === 0 ? {} : { number: signedAs.number };

const numberText = (signedAs: SignedAs | undefined): string =>
  signedAs === undefined || signedAs.number === 0 ? '' : `, number ${signedAs.number}`;

const COLOURS = { activated: 'green', refused: 'red', rolled_back: 'yellow' } as const;

const row = ({ at, what, revision, archive, message }: BundleEvent) => [
  { text: at },
  { text: what.replace('_', ' '), colour: COLOURS[what] },
  { text: revision ?? '-' },
  { text: archive.slice(0, 12) },
  { text: message ?? '-' },
];

import { hash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import type { BundleEvent, BundleState, KnownBundle, SignedAs } from '../../generated/types.ts';
import { makeFolders } from '../../lib/files.ts';
import { validator } from '../../lib/schemas.ts';
import { writeDurably } from '../db/data-dir.ts';

const validateBundleState = validator('BundleState');

const MAX_EVENTS = 10;
const MAX_UNNUMBERED = 100;
const ARCHIVE = '.tar.gz';

const folderIn = (dataDir: string): string => path.join(dataDir, 'policy');
const stateIn = (dataDir: string): string => path.join(folderIn(dataDir), 'state.json');
const archiveIn = (dataDir: string, archive: string): string => path.join(folderIn(dataDir), `${archive}${ARCHIVE}`);

/** SHA-256, hex: by it an archive is known. */
export const archiveDigest = (archive: Uint8Array): string => hash('sha256', archive);

/** Undefined: no bundle from elsewhere was ever in force. @throws Error when the file is not ours */
export function readBundleState(dataDir: string): BundleState | undefined {
  const file = stateIn(dataDir);
  if (statSync(file, { throwIfNoEntry: false }) === undefined) return undefined;
  let state: unknown;
  try {
    state = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new Error(`${file} is not JSON.`, { cause: error });
  }
  if (!validateBundleState(state)) throw new Error(`${file} is not what Portcullis writes there.`);
  return state;
}

/** Policy in force in a data directory: a bundle, or the installation's own since a start without `POLICY_BUNDLE`. */
export type Standing =
  | { readonly bundle: BundleState }
  | { readonly installation: { /** RFC 3339; undefined: no bundle ever was. */ readonly since: string | undefined } };

export function standingIn(dataDir: string): Standing {
  const state = readBundleState(dataDir);
  return state === undefined || state.setAside !== undefined
    ? { installation: { since: state?.setAside } }
    : { bundle: state };
}

/** Notes that from now on the policy of the installation is in force. */
export function setBundleAside(dataDir: string, at: string): void {
  const state = readBundleState(dataDir);
  if (state !== undefined && state.setAside === undefined) writeBundleState(dataDir, { ...state, setAside: at });
}

/** Differs after each write, also by another process. */
export function bundleStateVersion(dataDir: string): string {
  const found = statSync(stateIn(dataDir), { throwIfNoEntry: false, bigint: true });
  return found === undefined ? 'none' : `${found.ino} ${found.mtimeNs}`;
}

/** Writes the state; archives that it does not name are removed. */
export function writeBundleState(dataDir: string, state: BundleState): void {
  const { active, previous, history } = state;
  const kept = [active, previous].map((bundle) => `${bundle?.archive}${ARCHIVE}`);
  makeFolders(folderIn(dataDir), 0o700);
  const text = JSON.stringify({ ...state, history: history.slice(0, MAX_EVENTS) }, null, 2);
  writeDurably(stateIn(dataDir), `${text}\n`);
  for (const name of readdirSync(folderIn(dataDir))) {
    if (name.endsWith(ARCHIVE) && !kept.includes(name)) rmSync(path.join(folderIn(dataDir), name));
  }
}

/** An archive that the state names or will. @throws Error when it is not there, or not as it was */
export function readKeptArchive(dataDir: string, archive: string): Buffer {
  const file = archiveIn(dataDir, archive);
  if (!existsSync(file)) throw new Error(`${file} is missing, the bundle that was in force.`);
  const content = readFileSync(file);
  if (archiveDigest(content) !== archive) throw new Error(`${file} is not the archive that was kept.`);
  return content;
}

export function keepArchive(dataDir: string, archive: Uint8Array): void {
  makeFolders(folderIn(dataDir), 0o700);
  writeDurably(archiveIn(dataDir, archiveDigest(archive)), archive);
}

/** The state once a bundle is in force. */
export function withActive(state: BundleState | undefined, active: KnownBundle): BundleState {
  const previous = state?.active.archive === active.archive ? state.previous : state?.active;
  const event = eventOf('activated', active.activatedAt, active);
  return {
    active,
    ...(previous === undefined ? {} : { previous }),
    ...signedAfter(state, active),
    history: [event, ...(state?.history ?? [])],
  };
}

/** Keeps the record of signed bundles by which the source cannot put an older one in force. */
function signedAfter(
  state: BundleState | undefined,
  { signedAs }: KnownBundle,
): Pick<BundleState, 'newest' | 'unnumbered'> {
  const newest = signedAs === undefined || signedAs.number === 0 ? state?.newest : signedAs;
  const others = state?.unnumbered ?? [];
  const unnumbered = signedAs?.number === 0 ? [...new Set([signedAs.content, ...others])] : others;
  return {
    ...(newest === undefined ? {} : { newest }),
    ...(unnumbered.length === 0 ? {} : { unnumbered: unnumbered.slice(0, MAX_UNNUMBERED) }),
  };
}

/** Why a signed bundle is older than those that were in force, as a sentence; undefined: it is not. */
export function olderFault(state: BundleState | undefined, { number, content }: SignedAs): string | undefined {
  const newest = state?.newest;
  if (number === 0) {
    if (newest !== undefined) return `Its signature has no number, and number ${newest.number} was in force.`;
    const isOld = state?.active.signedAs?.content !== content && state?.unnumbered?.includes(content) === true;
    return isOld ? 'It was in force before, and its signature has no number.' : undefined;
  }
  if (newest === undefined || number > newest.number) return undefined;
  if (number < newest.number) return `Its number, ${number}, is lower than ${newest.number}, which was in force.`;
  return content === newest.content ? undefined : `Number ${number} was in force with other content.`;
}

/** The state after the bundle in force and the one before have changed places. @throws Error where none was before */
export function rolledBack(state: BundleState, at: string): BundleState {
  const { active, previous, history, newest: _, ...others } = state;
  if (previous === undefined) throw new Error('There is no bundle to go back to: none was in force before this one.');
  const { signedAs } = previous;
  return {
    ...others,
    ...(signedAs === undefined || signedAs.number === 0 ? {} : { newest: signedAs }),
    active: { ...previous, activatedAt: at },
    previous: active,
    held: active.archive,
    history: [eventOf('rolled_back', at, previous), ...history],
  };
}

export const eventOf = (
  what: BundleEvent['what'],
  at: string,
  { archive, revision, source }: Pick<KnownBundle, 'archive' | 'revision' | 'source'>,
): BundleEvent => ({ at, what, archive, revision, source });

import { type ChildProcess, fork } from 'node:child_process';
import { variablesOfNode } from '../../config/config.ts';
import type { SignedAs } from '../../generated/types.ts';
import {
  archivedBundle,
  BundleRefused,
  isRefusalCode,
  type RefusalCode,
  readArchive,
} from '../../policy/archive/read-archive.ts';
import type { Trust } from '../../policy/archive/signature.ts';
import type { PolicyBundle } from '../../policy/bundle.ts';

/** An archive that may be anyone's. */
export interface Offer {
  readonly archive: Uint8Array;
  /** Null: it is only judged by and never serves, so nobody asks who signed it. */
  readonly trust: Trust | null;
  /** It only has to load: nobody asks whether it passes the self-test and its fixtures. */
  readonly onlyLoads?: boolean;
}

/** The proof of a passed trial: the digest of the bundle, and its signature where one was verified. */
export interface Passed {
  readonly digest: string;
  readonly signedAs?: SignedAs | undefined;
}

export type Verdict = Passed | { readonly code: RefusalCode; readonly message: string };

export interface TrialOptions {
  /** After this time the trial is ended and the bundle refused. */
  readonly limitMs?: number;
  /** Aborted: nobody waits for the verdict. */
  readonly signal?: AbortSignal;
}

const LIMIT_MS = 20_000;
const MAX_OLD_SPACE_MB = 256;
const MAX_STDERR = 64 * 1024;
/** A line that V8 or `trial-watch.ts` writes to stderr before it ends the process. */
const FATAL = /^(?:# )?(?:FATAL ERROR: )?(.*(?:Allocation failed|Fatal |more than \d+ MB).*)$/m;

/** The only way into force: the bundle passes its trial, and the bundle that is loaded is the one that passed. @throws as both */
export async function tryBundle(offer: Offer, options: TrialOptions = {}): Promise<PolicyBundle> {
  return loadTried(offer, await passTrial(offer, options));
}

/**
 * Tries a bundle in a process of its own, so that one that hangs, crashes or takes all memory harms nobody: the archive is unpacked and
 * its signature verified, its module is compiled and loaded, and it judges the self-test and the fixtures that it carries.
 * @throws BundleRefused, or the signal's reason
 */
export async function passTrial(offer: Offer, { limitMs = LIMIT_MS, signal }: TrialOptions = {}): Promise<Passed> {
  signal?.throwIfAborted();
  const child = startTrial();
  const answer = answerOf(child);
  const end = (): void => void child.kill('SIGKILL');
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    end();
  }, limitMs);
  signal?.addEventListener('abort', end);
  try {
    child.send(offer, () => {}); // A process that ended before it read the offer gives no answer.
    const verdict = await answer;
    if ('digest' in verdict) return verdict;
    throw new BundleRefused(verdict.code, verdict.message);
  } catch (error) {
    end();
    signal?.throwIfAborted();
    if (isLate) throw new BundleRefused('time_limit', `Its trial took longer than ${limitMs} ms.`);
    throw error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', end);
  }
}

/** Loads the bundle that passed. @throws BundleRefused when the bytes are not those that were tried */
export function loadTried(offer: Offer, { digest, signedAs }: Passed): PolicyBundle {
  const bundle = archivedBundle(readArchive(offer.archive));
  if (bundle.digest !== digest) throw new BundleRefused('policy', 'It was changed between its trial and its load.');
  return { ...bundle, signedAs };
}

const startTrial = (): ChildProcess =>
  fork(new URL('./trial-process.ts', import.meta.url), {
    execArgv: [`--max-old-space-size=${MAX_OLD_SPACE_MB}`, '--v8-pool-size=1', '--disable-warning=ExperimentalWarning'],
    env: variablesOfNode(),
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    serialization: 'advanced',
  });

/** The verdict of a trial. Rejects with BundleRefused when the process ends without one. */
async function answerOf(child: ChildProcess): Promise<Verdict> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-MAX_STDERR);
  });
  child.once('message', resolve);
  child.once('error', (error) => reject(refused(`It could not be tried: ${error.message}.`, error)));
  child.once('close', (code, signal) => reject(crashed(stderr, signal ?? `exit code ${code}`)));
  const answer = await promise;
  if (!isVerdict(answer)) throw new Error('The trial gave no verdict.');
  return answer;
}

function crashed(stderr: string, end: string): BundleRefused {
  const reason = FATAL.exec(stderr)?.[1] ?? `it ended with ${end}`;
  return refused(`Its trial crashed: ${reason}.`, new Error(stderr));
}

const refused = (message: string, cause: Error): BundleRefused => new BundleRefused('self_test', message, cause);

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

const isVerdict = (value: unknown): value is Verdict =>
  isObject(value) &&
  ('digest' in value
    ? typeof value.digest === 'string' && (!('signedAs' in value) || isSignedAs(value.signedAs))
    : 'code' in value && isRefusalCode(value.code) && 'message' in value && typeof value.message === 'string');

const isSignedAs = (value: unknown): value is SignedAs | undefined =>
  value === undefined ||
  (isObject(value) &&
    'number' in value &&
    typeof value.number === 'number' &&
    'content' in value &&
    typeof value.content === 'string');

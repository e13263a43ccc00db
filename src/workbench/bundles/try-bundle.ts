import { Worker } from 'node:worker_threads';
import { Thread, ThreadTimeout } from '../../lib/threads.ts';
import { BundleRefused, type RefusalCode } from '../../policy/archive/read-archive.ts';
import type { Trust } from '../../policy/archive/signature.ts';
import type { PolicyBundle } from '../../policy/bundle.ts';

/** What is to serve: the policy of this installation (or of another policy folder), or an archive from elsewhere. */
export type Offer =
  | { readonly kind: 'built in'; readonly directory?: string }
  | {
      readonly kind: 'archive';
      readonly archive: Uint8Array;
      /** Null: it is only judged by and never serves, so nobody asks who signed it. */
      readonly trust: Trust | null;
    };

export type Verdict =
  | { readonly bundle: PolicyBundle }
  | { readonly refusal: { readonly code: RefusalCode; readonly message: string } };

export interface TrialOptions {
  /** After which the thread is ended and the bundle refused. */
  readonly limitMs?: number;
  /** Aborted: nobody waits for the verdict. */
  readonly signal?: AbortSignal;
}

const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 256 };
const LIMIT_MS = 20_000;

/**
 * The only way into force, in a thread of its own, so that a bundle that hangs, crashes or takes all memory harms nobody: it is
 * unpacked and its signature verified, its module is compiled, and it judges the self-test and the fixtures that it carries.
 * @throws BundleRefused, or the signal's reason
 */
export async function tryBundle(
  offer: Offer,
  { limitMs = LIMIT_MS, signal }: TrialOptions = {},
): Promise<PolicyBundle> {
  const thread = new Thread<Offer, Verdict>(
    () => new Worker(new URL('./trial-worker.ts', import.meta.url), { resourceLimits: RESOURCE_LIMITS }),
  );
  const end = (): void => void thread.end();
  signal?.addEventListener('abort', end);
  try {
    const verdict = await thread.ask(offer, { limitMs });
    if ('refusal' in verdict) throw new BundleRefused(verdict.refusal.code, verdict.refusal.message);
    return verdict.bundle;
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof BundleRefused) throw error;
    throw error instanceof ThreadTimeout
      ? new BundleRefused('time_limit', `Its trial took longer than ${limitMs} ms.`)
      : new BundleRefused('self_test', 'Its trial crashed.', error);
  } finally {
    signal?.removeEventListener('abort', end);
    await thread.end();
  }
}

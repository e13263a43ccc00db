import { Worker } from 'node:worker_threads';
import { Thread, ThreadTimeout } from '../lib/thread.ts';
import type { PolicyBundle } from './bundle.ts';
import { PolicyFailure } from './policy-failure.ts';

const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 128 };

/**
 * Tries a bundle in a worker before it may serve, so that a policy that hangs, crashes or denies nothing harms nobody.
 * @param limitMs after which the worker is ended and the bundle refused.
 * @throws PolicyFailure naming what the policy got wrong.
 */
export async function selfTest(bundle: PolicyBundle, limitMs = 10_000): Promise<void> {
  const thread = new Thread<PolicyBundle, string | null>(
    () => new Worker(new URL('./self-test-worker.ts', import.meta.url), { resourceLimits: RESOURCE_LIMITS }),
  );
  const fault = await thread.ask(bundle, { limitMs }).catch((error: unknown) => {
    throw error instanceof ThreadTimeout
      ? new PolicyFailure(`The self-test took longer than ${limitMs} ms.`)
      : new PolicyFailure('The self-test crashed.', error);
  });
  await thread.end();
  if (fault !== null) throw new PolicyFailure(`The self-test failed: ${fault}`);
}

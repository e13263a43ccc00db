import { Worker } from 'node:worker_threads';
import type { PolicyBundle } from './bundle.ts';
import { PolicyFailure } from './policy-failure.ts';

/**
 * Tries a bundle in a worker before it may serve, so that a policy that hangs, crashes or denies nothing harms nobody.
 * @param limitMs after which the worker is ended and the bundle refused.
 * @throws PolicyFailure naming what the policy got wrong.
 */
export async function selfTest(bundle: PolicyBundle, limitMs = 10_000): Promise<void> {
  const worker = new Worker(new URL('./self-test-worker.ts', import.meta.url), {
    workerData: bundle,
    resourceLimits: { maxOldGenerationSizeMb: 128 },
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(() => reject(new PolicyFailure(`The self-test took longer than ${limitMs} ms.`)), limitMs);
  worker.once('message', (fault: string | null) => {
    if (fault === null) resolve();
    else reject(new PolicyFailure(`The self-test failed: ${fault}`));
  });
  worker.once('error', (cause) => reject(new PolicyFailure('The self-test crashed.', cause)));
  worker.once('exit', () => reject(new PolicyFailure('The self-test ended without an answer.')));
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}

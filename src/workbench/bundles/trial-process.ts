import { Worker } from 'node:worker_threads';
import { archivedBundle, BundleRefused, readArchive } from '../../policy/archive/read-archive.ts';
import { verifySignature } from '../../policy/archive/signature.ts';
import { PolicyFailure } from '../../policy/data-document.ts';
import { createPdp } from '../../policy/pdp.ts';
import { causesOf, passSelfTest } from '../../policy/self-test.ts';
import type { Offer, Passed, Verdict } from './try-bundle.ts';

async function passed(offer: Offer): Promise<Passed> {
  const files = readArchive(offer.archive);
  const signedAs = offer.trust === null ? undefined : await verifySignature(files, offer.trust);
  const bundle = archivedBundle(files);
  const pdp = createPdp(bundle);
  if (offer.onlyLoads) return { digest: bundle.digest };
  passSelfTest(pdp);
  const { fixtureFault } = await import('../fixtures/test-policy.ts');
  const fault = fixtureFault(pdp, files);
  if (fault !== null) throw new BundleRefused('fixtures', `One of its fixtures fails: ${fault}`);
  return { digest: bundle.digest, signedAs };
}

async function verdictOn(offer: Offer): Promise<Verdict> {
  try {
    return await passed(offer);
  } catch (error) {
    if (error instanceof BundleRefused) return { code: error.code, message: error.message };
    if (error instanceof PolicyFailure) return { code: 'policy', message: causesOf(error) };
    throw error;
  }
}

new Worker(new URL('./trial-watch.ts', import.meta.url)).unref();
process.once('message', async (offer: Offer) => {
  // The channel is all that keeps the process alive.
  process.send?.(await verdictOn(offer), () => process.disconnect?.());
});

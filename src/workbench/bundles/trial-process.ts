import { Worker } from 'node:worker_threads';
import { BundleRefused } from '../../policy/archive/read-archive.ts';
import { readBundle } from '../../policy/bundle.ts';
import { PolicyFailure } from '../../policy/data-document.ts';
import { createPdp, type Pdp } from '../../policy/pdp.ts';
import { selfTestFault } from '../../policy/self-test.ts';
import type { Offer, Passed, Verdict } from './try-bundle.ts';

async function passed(offer: Offer): Promise<Passed> {
  if (offer.kind === 'built in') {
    const bundle = readBundle(offer.directory);
    passSelfTest(createPdp(bundle));
    return { digest: bundle.digest };
  }
  // Loaded only here: the policy of the installation needs neither.
  const { archivedBundle, readArchive } = await import('../../policy/archive/read-archive.ts');
  const { verifySignature } = await import('../../policy/archive/signature.ts');
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

function passSelfTest(pdp: Pdp): void {
  let fault: string | null;
  try {
    fault = selfTestFault(pdp);
  } catch (error) {
    fault = textOf(error);
  }
  if (fault !== null) throw new BundleRefused('self_test', `It fails the self-test: ${fault}`);
}

/** The message of an error, and of its causes. */
const textOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message} ${textOf(error.cause)}`;
};

async function verdictOn(offer: Offer): Promise<Verdict> {
  try {
    return await passed(offer);
  } catch (error) {
    if (error instanceof BundleRefused) return { code: error.code, message: error.message };
    if (error instanceof PolicyFailure) return { code: 'policy', message: textOf(error) };
    throw error;
  }
}

new Worker(new URL('./trial-watch.ts', import.meta.url)).unref();
process.once('message', async (offer: Offer) => {
  // The channel is all that keeps the process alive.
  process.send?.(await verdictOn(offer), () => process.disconnect?.());
});

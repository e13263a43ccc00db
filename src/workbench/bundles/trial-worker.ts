import { parentPort } from 'node:worker_threads';
import { BundleRefused } from '../../policy/archive/read-archive.ts';
import { type PolicyBundle, readBundle } from '../../policy/bundle.ts';
import { PolicyFailure } from '../../policy/data-document.ts';
import { createPdp, type Pdp } from '../../policy/pdp.ts';
import { selfTestFault } from '../../policy/self-test.ts';
import type { Offer, Verdict } from './try-bundle.ts';

async function tried(offer: Offer): Promise<PolicyBundle> {
  if (offer.kind === 'built in') {
    const bundle = readBundle(offer.directory);
    passSelfTest(createPdp(bundle));
    return bundle;
  }
  // Loaded only here: the policy of the installation needs neither.
  const { readArchive } = await import('../../policy/archive/read-archive.ts');
  const { verifySignature } = await import('../../policy/archive/signature.ts');
  const { archivedBundle } = await import('../../policy/archive/read-archive.ts');
  const files = readArchive(offer.archive);
  const signedAs = offer.trust === null ? undefined : await verifySignature(files, offer.trust);
  const bundle: PolicyBundle = { ...archivedBundle(files), signedAs };
  const pdp = createPdp(bundle);
  passSelfTest(pdp);
  const { fixtureFault } = await import('../fixtures/test-policy.ts');
  const fault = fixtureFault(pdp, files);
  if (fault !== null) throw new BundleRefused('fixtures', `One of its fixtures fails: ${fault}`);
  return bundle;
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

/** What the evaluator throws may be a text. */
const textOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message} ${textOf(error.cause)}`;
};

async function verdictOn(offer: Offer): Promise<Verdict> {
  try {
    return { bundle: await tried(offer) };
  } catch (error) {
    if (error instanceof BundleRefused) return { refusal: { code: error.code, message: error.message } };
    if (error instanceof PolicyFailure) return { refusal: { code: 'policy', message: textOf(error) } };
    throw error;
  }
}

parentPort?.on('message', async (offer: Offer) => parentPort?.postMessage(await verdictOn(offer)));

import { parentPort } from 'node:worker_threads';
import type { PolicyBundle } from './bundle.ts';
import { createPdp } from './pdp.ts';
import { selfTestFault } from './self-test-cases.ts';

/** The first fault of a policy; null: none. */
function faultOf(bundle: PolicyBundle): string | null {
  try {
    return selfTestFault(createPdp(bundle));
  } catch (error) {
    return error instanceof Error ? `${error.message} ${error.cause ?? ''}` : String(error);
  }
}

parentPort?.on('message', (bundle: PolicyBundle) => parentPort?.postMessage(faultOf(bundle)));

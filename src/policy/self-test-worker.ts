import { parentPort, workerData } from 'node:worker_threads';
import { createPdp } from './pdp.ts';
import { selfTestFault } from './self-test-cases.ts';

/** Answers null, or the first fault of the policy in `workerData`. */
try {
  parentPort?.postMessage(selfTestFault(createPdp(workerData)));
} catch (error) {
  parentPort?.postMessage(error instanceof Error ? `${error.message} ${error.cause ?? ''}` : String(error));
}

import { POLICY_DIRECTORY, readBundle } from './bundle.ts';
import type { Pdp } from './pdp.ts';
import { createPdp } from './pdp.ts';
import { selfTest } from './self-test.ts';

/** The policy in force. What holds the PDP of one call keeps it to the end; the next call gets the new one. */
export interface ActivePolicy {
  pdp(): Pdp;
  /**
   * Verifies, instantiates and tests the bundle of a policy folder, then puts it in force. @throws PolicyFailure, and then
   * the policy in force stays.
   */
  activate(directory: string): Promise<Pdp>;
}

/** Starts with the bundle of this installation, or of `directory`. @throws PolicyFailure when it may not serve. */
export async function createActivePolicy(directory: string = POLICY_DIRECTORY): Promise<ActivePolicy> {
  let current = await testedPdp(directory);
  return {
    pdp: () => current,
    async activate(next) {
      current = await testedPdp(next);
      return current;
    },
  };
}

async function testedPdp(directory: string): Promise<Pdp> {
  const bundle = readBundle(directory);
  await selfTest(bundle);
  return createPdp(bundle);
}

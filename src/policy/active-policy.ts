import type { RefusalCode } from './archive/bundle-refused.ts';
import type { PolicyBundle } from './bundle.ts';
import { createPdp, type Pdp } from './pdp.ts';

/** What is known of the policy in force. Times are epoch ms. */
export interface PolicyStatus {
  /** The bundle digest. */
  readonly digest: string;
  readonly revision: string | undefined;
  /** A path or a URL; undefined: it is the policy of this installation. */
  readonly source: string | undefined;
  readonly activatedAt: number;
  /** When the source was last heard of; undefined: there is none, or it was not. */
  readonly checkedAt: number | undefined;
  /** Why what the source has is not in force; undefined: it is. */
  readonly refusal: { readonly code: RefusalCode; readonly message: string; readonly at: number } | undefined;
}

/** A bundle that has passed its trial, and what is known of it. */
export interface PolicyInForce {
  readonly bundle: PolicyBundle;
  readonly status: PolicyStatus;
}

/** The policy in force. What holds the PDP of one call keeps it to the end; the next call gets the new one. */
export interface ActivePolicy {
  pdp(): Pdp;
  status(): PolicyStatus;
  /** Puts another bundle in force, or only what is known of the same one. @throws PolicyFailure, and then nothing changes */
  activate(next: PolicyInForce): void;
}

/** @throws PolicyFailure */
export function createActivePolicy({ bundle, status }: PolicyInForce): ActivePolicy {
  let pdp = createPdp(bundle);
  let known = status;
  return {
    pdp: () => pdp,
    status: () => known,
    activate(next) {
      if (next.bundle.digest !== pdp.bundleDigest) pdp = createPdp(next.bundle);
      known = next.status;
    },
  };
}

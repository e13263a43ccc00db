import type { PolicySubject } from '../../generated/types.ts';

/** Who authenticated: a gateway key with its owner and place. Made by `authenticate` alone. */
export interface Principal {
  readonly keyId: string;
  readonly organizationId: string;
  readonly projectId: string;
  readonly memberId: string;
  /** Whose rules apply, outermost scope first. */
  readonly subjects: readonly PolicySubject[];
  /** The organization's rule revision when the key was read. */
  readonly ruleRevision: number;
  /** A spend limit applies, the key's own or a budget: only mappings whose cost can be told may serve. */
  readonly capped: boolean;
  /** For how long the project's answers may be given again; undefined: not at all. */
  readonly cacheSeconds: number | undefined;
}

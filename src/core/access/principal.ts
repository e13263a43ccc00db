import type { KeyRate } from '../../domain/rate-limits.ts';
import type { PolicySubject } from '../../generated/types.ts';
import type { UsableKey } from '../../store/tenants/key-credential.ts';

/** Who authenticated: a gateway key with its owner and place. Made by `authenticate` alone. */
export interface Principal {
  readonly keyId: string;
  readonly organizationId: string;
  readonly projectId: string;
  readonly memberId: string;
  /** Whose rules apply, outermost scope first. */
  readonly subjects: readonly PolicySubject[];
  /** Of the key. */
  readonly keyTags: readonly string[];
  /** The organization's rule revision when the key was read. */
  readonly ruleRevision: number;
  /** A spend limit applies, the key's own or a budget: only mappings whose cost can be told may serve. */
  readonly capped: boolean;
  /** What the key, its owner, its project and its organization may take in a minute; empty where nothing is limited. */
  readonly rates: readonly KeyRate[];
  /** For how long the project's answers may be given again; undefined: not at all. */
  readonly cacheSeconds: number | undefined;
}

/** Whose rules a key's calls meet, outermost scope first (policy/README.md, "Whose rules?"). */
export const subjectsOf = ({
  organizationId,
  groupIds,
  memberId,
  keyId,
}: Pick<UsableKey, 'organizationId' | 'groupIds' | 'memberId' | 'keyId'>): readonly PolicySubject[] => [
  { scope: 'organization', id: organizationId },
  ...groupIds.map((id): PolicySubject => ({ scope: 'group', id })),
  { scope: 'member', id: memberId },
  { scope: 'key', id: keyId },
];

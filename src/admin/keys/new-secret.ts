import { generateSecret, hashSecret, maskSecret, type Pepper, type SecretKind } from '../../domain/id.ts';
import type { StoredSecret } from '../../store/db/tables.ts';

/** Inputs for a new secret: the time in epoch ms, and the pepper under which it is hashed. */
export interface SecretWrite {
  readonly now: number;
  readonly pepper: Pepper;
}

/** A new secret: `token`, which its owner is shown once, and what is stored of it. */
export function newSecret(kind: SecretKind, pepper: Pepper): StoredSecret & { readonly token: string } {
  const token = generateSecret(kind);
  return { token, secretHash: hashSecret(token, pepper), pepperId: pepper.id, mask: maskSecret(token) };
}

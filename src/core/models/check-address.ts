import { permissionDenied } from '../../domain/errors.ts';
import { denialReason } from '../../policy/denial-reason.ts';
import { inputDocument } from '../../policy/input-document.ts';
import type { Pdp } from '../../policy/pdp.ts';
import type { Store } from '../../store/store.ts';
import type { Documents } from '../access/documents.ts';
import { tellDenial } from '../access/tell-denial.ts';
import { judgesAddresses, type ListCaller } from './reachable.ts';

/** IP rules look at no candidate; the policy wants one. */
const ANY = { id: 'any', names: ['any'], provider_names: ['any'], free: true };

/**
 * Judges by the IP rules alone, for a door that shows something before a model is named. The calls behind it are judged as all
 * calls are. @throws ApiError 403, PolicyFailure
 */
export type CheckAddress = (caller: ListCaller) => Promise<void>;

export function createCheckAddress({
  store,
  documents,
  pdp,
}: {
  readonly store: Pick<Store, 'read'>;
  readonly documents: Documents;
  readonly pdp: () => Pdp;
}): CheckAddress {
  return async ({ principal, clientIp }) => {
    const data = await documents(principal);
    if (!judgesAddresses(data)) return;
    const input = { ...inputDocument('moderation', clientIp, principal.subjects, []), candidates: [ANY] };
    const { violations } = pdp().decide(input, data);
    const byAddress = violations.filter(({ kind }) => kind === 'ip_cidrs');
    if (byAddress.length === 0) return;
    const reason = denialReason(input, { permitted: [], violations: byAddress });
    throw permissionDenied(await tellDenial(store, principal.organizationId, reason));
  };
}

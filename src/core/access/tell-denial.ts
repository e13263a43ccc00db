import { denialMessage, namedIn } from '../../policy/denial-message.ts';
import type { DenialReason } from '../../policy/denial-reason.ts';
import type { Store } from '../../store/store.ts';
import { findNames } from '../../store/tenants/names.ts';

/**
 * What the caller of a denied request reads: each rule by its id and, where it has one, its description. Only rules and
 * groups of the caller's own organization have a name here.
 */
export const tellDenial = (store: Pick<Store, 'read'>, organizationId: string, reason: DenialReason): Promise<string> =>
  store.read((db) => denialMessage(reason, findNames(db, organizationId, namedIn(reason))));

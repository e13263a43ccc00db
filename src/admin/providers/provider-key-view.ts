import { formatTime } from '../../domain/time.ts';
import type { ProviderKeyRecord } from '../../generated/types.ts';
import type { Database } from '../../store/db/database.ts';
import type * as store from '../../store/providers/provider-key-records.ts';
import { findProject } from '../../store/tenants/tenants.ts';
import { optional } from '../audit/optional.ts';

/** A provider key as admin JSON shows it: with a mask of its secret. */
export const viewProviderKey = (db: Database, key: store.ProviderKeyRecord): ProviderKeyRecord => ({
  id: key.id,
  createdAt: formatTime(key.createdAt),
  updatedAt: formatTime(key.updatedAt),
  label: key.label,
  provider: key.provider,
  projectId: key.projectId,
  projectName: optional(key.projectId, (id) => findProject(db, key.organizationId, id)?.name ?? null),
  baseUrl: key.baseUrl,
  maskedToken: key.mask,
  position: key.position,
  status: key.status,
});

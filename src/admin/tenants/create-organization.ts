import { checkShape } from '../../domain/check-shape.ts';
import { validator } from '../../lib/schemas.ts';
import type { Database } from '../../store/db/database.ts';
import type { SecretWrite } from '../keys/new-secret.ts';
import { addTenant, type Tenant } from './new-tenant.ts';

const EXPLANATIONS = [
  { at: /^\/name$/, must: 'must be a text of 1 to 256 characters, not all of them blank' },
  { at: /^\/ownerEmail$/, must: 'must be an e-mail address of at most 254 ASCII characters' },
];

/**
 * Adds an organization to this installation: for the command line, which belongs to none. Its master key makes everything else;
 * its secret is shown here and never again.
 * @param body as `OrganizationCreate`, unchecked; 400 when it is not.
 */
export function createOrganization(db: Database, body: unknown, write: SecretWrite): Tenant {
  const wanted = checkShape(validator('OrganizationCreate'), body, EXPLANATIONS);
  return db.transaction(() => addTenant(db, wanted, write));
}

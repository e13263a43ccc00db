import { newId } from '../domain/id.ts';
import { generateSecret, hashSecret, maskSecret, type Pepper, type SecretKind } from '../domain/secret.ts';
import type { Database } from '../store/database.ts';
import { initializeTenant, isEmpty } from '../store/initialize-tenant.ts';
import type { StoredSecret } from '../store/keys.ts';

/** What the first start made. The secrets are told here and never again. */
export interface FirstRun {
  readonly organizationId: string;
  readonly projectId: string;
  readonly ownerEmail: string;
  readonly masterKey: string;
  readonly gatewayKey: string;
}

/** The e-mail address of the first owner, until he changes it. */
const OWNER_EMAIL = 'owner@localhost';

function makeSecret(kind: SecretKind, pepper: Pepper): { secret: string; stored: StoredSecret } {
  const secret = generateSecret(kind);
  return { secret, stored: { secretHash: hashSecret(secret, pepper), pepperId: pepper.id, mask: maskSecret(secret) } };
}

/**
 * Fills an empty database with an organization, a project, its owner, a master key and a gateway key (decisions.md,
 * section 1, "first run"); undefined, with nothing changed, when there is an organization already. Runs inside one
 * transaction of the caller's.
 */
export function firstRun(db: Database, pepper: Pepper, now: number): FirstRun | undefined {
  if (!isEmpty(db)) return undefined;
  const master = makeSecret('master', pepper);
  const gateway = makeSecret('gateway', pepper);
  const organization = { id: newId('org'), name: 'Default' };
  const project = { id: newId('proj'), name: 'Default' };
  initializeTenant(
    db,
    {
      organization,
      project,
      owner: { id: newId('mem'), email: OWNER_EMAIL, passwordHash: null },
      masterKey: { id: newId('mkey'), description: 'First master key', ...master.stored },
      key: { id: newId('key'), description: 'First gateway key', ...gateway.stored },
    },
    now,
  );
  return {
    organizationId: organization.id,
    projectId: project.id,
    ownerEmail: OWNER_EMAIL,
    masterKey: master.secret,
    gatewayKey: gateway.secret,
  };
}

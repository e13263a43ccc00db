import type { Pepper } from '../../domain/id.ts';
import type { Database } from '../../store/db/database.ts';
import { isEmpty } from '../../store/tenants/tenants.ts';
import type { Actor } from '../audit/actor.ts';
import { newSecret } from '../keys/new-secret.ts';
import { addTenant } from '../tenants/new-tenant.ts';
import { createSignInLink } from './sign-in-links.ts';

/** What the first start made. The secrets are shown here and never again. */
export interface FirstRun {
  readonly organizationId: string;
  readonly projectId: string;
  readonly ownerEmail: string;
  readonly masterKey: string;
  readonly gatewayKey: string;
  /** Of the link with which the owner signs in first. */
  readonly signInToken: string;
}

/** The e-mail address of the first owner, until they change it. */
const OWNER_EMAIL = 'owner@localhost';

/**
 * Fills an empty database with an organization, a project, its owner with a link to sign in, a master key and a gateway key
 * (src/admin/README.md, "first run"); undefined, with nothing changed, when there is an organization already. Runs inside one
 * transaction of the caller's.
 */
export function firstRun(db: Database, pepper: Pepper, now: number): FirstRun | undefined {
  if (!isEmpty(db)) return undefined;
  const { token: gatewayKey, ...secret } = newSecret('gateway', pepper);
  const wanted = { name: 'Default', ownerEmail: OWNER_EMAIL, gatewayKey: secret };
  const { organization, project, owner, masterKey } = addTenant(db, wanted, { now, pepper });
  const cli: Actor = { kind: 'cli', organizationId: organization.id };
  const { token: signInToken } = createSignInLink(db, cli, owner.id, { now, pepper });
  return {
    organizationId: organization.id,
    projectId: project.id,
    ownerEmail: owner.email,
    masterKey: masterKey.token,
    gatewayKey,
    signInToken,
  };
}

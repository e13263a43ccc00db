import type { Catalog } from '../../catalog/catalog.ts';
import { invalidRequest } from '../../domain/errors.ts';
import type { Database } from '../../store/db/database.ts';
import { findCustomProvider } from '../../store/providers/custom-provider-records.ts';

/** The providers that are there for everyone: those of the catalogue, of the environment, and the sandbox. */
export type KnownProviders = Pick<Catalog, 'providers'>;

const isKnown = (wanted: string, catalog: KnownProviders): boolean =>
  catalog.providers().some(({ id }) => id === wanted);

/** In a rule `custom` means all custom providers; `sandbox` is built in, also where it is off. */
const RESERVED = ['custom', 'sandbox'];

/** 400 for a name that is not free for a new custom provider of the organization. */
export function checkNameIsFree(db: Database, organizationId: string, name: string, catalog: KnownProviders): void {
  const isTaken =
    RESERVED.includes(name) || isKnown(name, catalog) || findCustomProvider(db, organizationId, name) !== undefined;
  if (isTaken) throw invalidRequest(`The provider name "${name}" is taken.`, '/name');
}

/** 400 unless it is the id of a known provider, or `custom:<name>` of a custom provider of the organization. */
export function checkIsProvider(db: Database, organizationId: string, provider: string, catalog: KnownProviders): void {
  const [, name] = /^custom:(.*)$/s.exec(provider) ?? [];
  if (name !== undefined) {
    if (findCustomProvider(db, organizationId, name) !== undefined) return;
    throw invalidRequest(`"${provider}" is not a custom provider of the organization.`, '/provider');
  }
  if (isKnown(provider, catalog)) return;
  throw invalidRequest(
    `"${provider}" is not a provider of the catalogue; a custom provider is written "custom:<name>".`,
    '/provider',
  );
}

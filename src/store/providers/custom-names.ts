import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import { everyAlias } from './aliases.ts';
import { everyTagSet } from './tag-sets.ts';

/** By which names rules may mean what an organization has added. */
export interface CustomNames {
  /** Of its custom providers, without `custom:`. */
  readonly providers: readonly string[];
  /** `<custom>/<model>` of its custom models, inactive ones too. */
  readonly models: readonly string[];
  /** Of its own, on whatever they stand. */
  readonly tags: readonly string[];
  /** Names of its aliases and those of its projects, which no rule means. */
  readonly aliases: readonly string[];
}

export function readCustomNames(db: Database, organizationId: string): CustomNames {
  const providers = build
    .selectFrom('custom_providers')
    .where('custom_providers.organizationId', '=', organizationId)
    .where('custom_providers.deletedAt', 'is', null);
  const models = providers
    .innerJoin('custom_models', 'custom_models.customProviderId', 'custom_providers.id')
    .where('custom_models.deletedAt', 'is', null);
  return {
    providers: db.all(providers.select('name')).map(({ name }) => name),
    models: db.all(models.select(['name', 'model'])).map(({ name, model }) => `${name}/${model}`),
    tags: everyTagSet(db, organizationId).flatMap(({ tags }) => tags),
    aliases: everyAlias(db, organizationId).map(({ name }) => name),
  };
}

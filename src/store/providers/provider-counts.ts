import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';

/** How many of the organizations' own credentials there are that calls use, by provider id; a custom one is `custom:<name>`. */
export const countProviderKeys = (db: Database): { providerId: string; count: number }[] =>
  db.all(
    build
      .selectFrom('provider_keys')
      .select(['provider_id as providerId', sql<number>`count(*)`.as('count')])
      .where('deleted_at', 'is', null)
      .where('status', '=', 'active')
      .groupBy('provider_id')
      .orderBy('provider_id'),
  );

/** How many custom providers of all organizations ask for no credential. */
export const countKeylessProviders = (db: Database): number =>
  db.get(
    build
      .selectFrom('custom_providers')
      .select(sql<number>`count(*)`.as('count'))
      .where('deleted_at', 'is', null)
      .where('keyless', '=', 1),
  )?.count ?? 0;

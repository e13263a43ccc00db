import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import { countRows } from '../db/page.ts';
import { build } from '../db/sql.ts';

/** How many of the organizations' own credentials there are that calls use, by provider id; a custom one is `custom:<name>`. */
export const countProviderKeys = (db: Database): { providerId: string; count: number }[] =>
  db.all(
    build
      .selectFrom('provider_keys')
      .select(['provider as providerId', sql<number>`count(*)`.as('count')])
      .where('deletedAt', 'is', null)
      .where('status', '=', 'active')
      .groupBy('provider')
      .orderBy('provider'),
  );

/** How many custom providers of all organizations ask for no credential. */
export const countKeylessProviders = (db: Database): number =>
  countRows(db, build.selectFrom('custom_providers').where('deletedAt', 'is', null).where('keyless', '=', 1));

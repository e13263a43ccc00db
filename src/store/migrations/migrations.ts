import { initial } from './0001-initial.ts';

/** Every migration, in order; the version of a schema is the number of those applied. Never change one that was released. */
export const MIGRATIONS: readonly string[] = [initial];

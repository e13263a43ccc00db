import type { Scope } from '../../generated/types.ts';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';

/** Text of a subject that has no rules: it lets everything through. */
const NO_RULES = '{"enforce":{}}';

/** Makes a key, member, group or organization known as a subject, with no rules. */
export function insertSubject(db: Database, organizationId: string, subjectId: string, scope: Scope): void {
  db.run(build.insertInto('subject_rules').values({ subjectId, organizationId, scope, compiledJson: NO_RULES }));
}

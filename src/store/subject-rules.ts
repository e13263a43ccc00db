import type { Database } from './database.ts';
import { bind, build, prepare } from './sql.ts';
import type { Scope } from './tables.ts';

/** Text of a subject that has no rules: it lets everything through. */
const NO_RULES = '{"enforce":{}}';

/** Makes a key, member or organization known as a subject, with no rules. */
export function insertSubject(db: Database, organizationId: string, subjectId: string, scope: Scope): void {
  db.run(
    build
      .insertInto('subject_rules')
      .values({ subject_id: subjectId, organization_id: organizationId, scope, compiled_json: NO_RULES }),
  );
}

/** Reads the compiled texts of the subjects of a request; prepared once for the hot path. */
export function prepareSubjectRules(
  db: Database,
): (organizationId: string, subjectIds: readonly string[]) => Map<string, string> {
  const statement = prepare(
    db.connection,
    build
      .selectFrom('subject_rules')
      .select('compiled_json')
      .where('subject_id', '=', bind<string>('subjectId'))
      .where('organization_id', '=', bind<string>('organizationId'))
      .compile(),
  );
  return (organizationId, subjectIds) => {
    const texts = new Map<string, string>();
    for (const subjectId of subjectIds) {
      const row = statement.get({ organizationId, subjectId });
      if (row === undefined) throw new Error(`The organization has no subject ${subjectId}.`);
      texts.set(subjectId, row.compiled_json);
    }
    return texts;
  };
}

/** Reads the organization's rule revision, which grows with every write of a rule; prepared once for the hot path. */
export function prepareRuleRevision(db: Database): (organizationId: string) => number {
  const statement = prepare(
    db.connection,
    build
      .selectFrom('organizations')
      .select('rule_revision')
      .where('id', '=', bind<string>('organizationId'))
      .compile(),
  );
  return (organizationId) => {
    const row = statement.get({ organizationId });
    if (row === undefined) throw new Error(`There is no organization ${organizationId}.`);
    return row.rule_revision;
  };
}

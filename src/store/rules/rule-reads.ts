import { LRUCache } from 'lru-cache';
import { getOrMake } from '../../lib/get-or-make.ts';
import type { Database } from '../db/database.ts';
import { type Freshness, FreshReads } from '../db/freshness.ts';
import { bind, build, prepare } from '../db/sql.ts';
import { isInParts, prepareTextParts } from '../db/text-parts.ts';

/** Long texts that are remembered; the longest have some 3 MB. */
const MAX_ASSEMBLED = 16;

/** The compiled rules of a subject. */
export interface CompiledRules {
  readonly text: string;
  /** What the database holds of it, for documents that are made of it (text-parts.ts). */
  readonly stored: string;
}

/** Reads the compiled rules of the subjects of a request, short ones in one statement; for the hot path prepared once by their number. */
export function prepareSubjectRules(
  db: Database,
): (organizationId: string, subjectIds: readonly string[]) => Map<string, CompiledRules> {
  const parts = prepareTextParts(db, 'compiled_parts');
  /** Parts never change: a long text that many keys share is put together once. */
  const assembled = new LRUCache<string, string>({ max: MAX_ASSEMBLED });
  const textOf = (stored: string): string => {
    if (!isInParts(stored)) return stored;
    const known = assembled.get(stored);
    if (known !== undefined) return known;
    const text = parts.read(stored);
    assembled.set(stored, text);
    return text;
  };
  const prepareFor = (count: number) =>
    prepare(
      db.connection,
      build
        .selectFrom('subject_rules')
        .select(['subjectId', 'compiledJson'])
        .where(
          'subjectId',
          'in',
          Array.from({ length: count }, (_, index) => bind<string>(`subject${index}`)),
        )
        .where('organizationId', '=', bind<string>('organizationId'))
        .compile(),
    );
  const statements = new Map<number, ReturnType<typeof prepareFor>>();
  return (organizationId, subjectIds) => {
    const { length } = subjectIds;
    const statement = getOrMake(statements, length, () => prepareFor(length));
    const values: Record<string, string> = { organizationId };
    for (const [index, id] of subjectIds.entries()) values[`subject${index}`] = id;
    const rows = statement.all(values);
    const rules = new Map(
      rows.map(({ subjectId, compiledJson: stored }) => [subjectId, { text: textOf(stored), stored }]),
    );
    const missing = subjectIds.find((id) => !rules.has(id));
    if (missing !== undefined) throw new Error(`The organization has no subject ${missing}.`);
    return rules;
  };
}

/** Reads the organization's rule revision, which grows with every write of a rule; for the hot path. */
export function createRuleRevision(db: Database, freshness: Freshness): (organizationId: string) => number {
  const known = new FreshReads<number>(freshness, 1000);
  const statement = prepare(
    db.connection,
    build.selectFrom('organizations').select('ruleRevision').where('id', '=', bind<string>('organizationId')).compile(),
  );
  return (organizationId) => {
    const remembered = known.get(organizationId);
    if (remembered !== undefined) return remembered;
    const epoch = freshness.lastEpoch();
    const row = statement.get({ organizationId });
    if (row === undefined) throw new Error(`There is no organization ${organizationId}.`);
    known.set(organizationId, row.ruleRevision, epoch);
    return row.ruleRevision;
  };
}

// Every query carries its organization (src/admin/README.md, "tenancy"): each chain that the query builder compiles in src/store
// names the organization for every table of tenants that it reads or changes, or is one of the exceptions that are explained here.
// Inserts need no look: the column is part of the row's type.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import BetterSqlite3 from 'better-sqlite3';
import { expect, it } from 'vitest';
import { migrate } from '../../src/store/migrations/migrate.ts';

const folder = fileURLToPath(new URL('../../src/store', import.meta.url));

const database = new BetterSqlite3(':memory:');
migrate(database);
/** Views have the columns that they show. */
const TABLES = database
  .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')")
  .pluck()
  .all();
const columnsOf = database.prepare<[string], string>('SELECT name FROM pragma_table_info(?)').pluck();

/** Tables whose rows belong to an organization, and the column that says to which; an origin is one organization's. */
const COLUMN: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    TABLES.flatMap((table) => (columnsOf.all(table).includes('organizationId') ? [[table, 'organizationId']] : [])),
  ),
  organizations: 'id',
  ledger: 'origin',
};

const FINDS = 'it finds the organization, by the hash of a secret';
const ALL = 'one organization, or, for the command line, all: the condition is added where one is named';
const COUNTS = 'what the output of a start counts over all organizations';
const RETENTION = 'what is old is deleted in all organizations; its sums are kept by organization';
const NUMBERS = 'calls of all organizations are numbered in one row';
const INDEX = 'the index is of the calls of all organizations; what is found in it is read by organization';
const FOLLOWS =
  'the ledger is followed for all organizations; what is found in it is read by organization, or for the operator';
const SEALS = 'the call log of all organizations is sealed and verified as one';
const COUNTED = 'decisions of all organizations are counted for the rules that they name, which are their own';
const SWEEP = 'what has expired is cleared away in all organizations';
const GRANT = 'the authorization server knows a grant by its random id, and nothing of organizations';
const CHAIN = 'the audit chain is one over the whole installation';

/** Why a query may do without: by its file and its declaration. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  'audit-entries.ts isKeyOfChain': CHAIN,
  'audit-entries.ts verifyAuditChain': CHAIN,
  'audit-entries.ts readChainHead': CHAIN,
  'audit-entries.ts holdsHead': CHAIN,
  'audit-chain.ts appendToChain': CHAIN,
  'budget-records.ts listAllBudgets': "the operator's metrics have the budgets of all organizations, by id alone",
  'call-follower.ts follow': FOLLOWS,
  'call-follower.ts lastNumber': FOLLOWS,
  'call-follower.ts positionNow': FOLLOWS,
  'call-follower.ts skipOldest': FOLLOWS,
  'call-index.ts hasNextBlock': INDEX,
  'call-seals.ts callTexts': SEALS,
  'call-seals.ts hasUnsealed': SEALS,
  'verify-calls.ts callName': SEALS,
  'verify-calls.ts hasEmpty': SEALS,
  'verify-calls.ts orphans': SEALS,
  'verify-calls.ts verifyCalls': SEALS,
  'call-index.ts rowsBetween': INDEX,
  'call-log.ts ofAll': "the operator's file of decisions is of all organizations; all else begins with ofOrganization",
  'tenants.ts isEmpty': 'whether this is the first start',
  'member-records.ts findInvitationByHash': FINDS,
  'key-credential.ts prepareFindKeyBy': FINDS,
  'key-records.ts listExpiredKeys': 'the background job marks expired keys in all organizations',
  'state-watch.ts anySealed': CHAIN,
  'statements.ts firstOpen': NUMBERS,
  'statements.ts greatestNumber': NUMBERS,
  'master-key-records.ts findMasterKeyByHash': FINDS,
  'member-records.ts findPasswordHolders': 'an e-mail and a password find the organization',
  'sign-in-records.ts findPasskeyByCredential': FINDS,
  'oauth.ts endOAuthGrant': GRANT,
  'oauth.ts findOAuthAccess': FINDS,
  'oauth.ts findOpenGrant': GRANT,
  'oauth.ts listDueGrants': SWEEP,
  'policy-subjects.ts groups': ALL,
  'policy-subjects.ts keys': ALL,
  'policy-subjects.ts members': ALL,
  'policy-subjects.ts organizations': ALL,
  'policy-subjects.ts rules': ALL,
  'provider-key-records.ts countKeylessProviders': COUNTS,
  'provider-key-records.ts countActiveProviderKeys': COUNTS,
  'ledger.ts recoverOpenCalls': 'after a crash every open call is settled',
  'refused-requests.ts countRefused': 'rows of all organizations have one bound',
  'refused-requests.ts forgetRefused': SWEEP,
  'call-follower.ts hasUncounted': COUNTED,
  'call-follower.ts nextReportCounts': COUNTED,
  'call-follower.ts passUnreported': COUNTED,
  'call-follower.ts storeReportCounts': COUNTED,
  'rotate-secrets.ts resealProviderKeys': 'rotating the encryption key seals the secrets of all organizations again',
  'retention.ts forgetCalls': RETENTION,
  'retention.ts forgetReferences': RETENTION,
  'retention.ts keepSums': RETENTION,
  'secrets.ts listGivenUp': 'peppers belong to the whole installation',
  'secrets.ts readSecretNeeds': 'which peppers and encryption keys the whole installation needs; it counts only',
  'text-parts.ts textPartsOf': 'parts are found by what rows of the organization refer to, and hold no organization',
  'sign-in-records.ts deleteExpiredSessions': SWEEP,
  'sign-in-records.ts findSessionByHash': FINDS,
  'sign-in-records.ts deleteExpiredSignInLinks': SWEEP,
  'sign-in-records.ts findSignInLinkByHash': FINDS,
  'tenants.ts listOrganizations': 'the list of organizations for the command line',
};

interface Query {
  /** `key-records.ts listKeys` */
  readonly name: string;
  /** Tables of tenants that no condition binds to an organization. */
  readonly unbound: readonly string[];
}

/** Where the bracket that opens at `start` is closed; texts and comments inside are skipped. */
function closing(text: string, start: number): number {
  let depth = 0;
  for (let index = start; index < text.length; index++) {
    const character = text.charAt(index);
    if ('([{'.includes(character)) depth++;
    else if (')]}'.includes(character) && --depth === 0) return index;
    else if ('\'"`'.includes(character)) index = endOfText(text, index);
    else if (text.startsWith('//', index)) index = text.indexOf('\n', index);
  }
  throw new Error('a bracket is never closed');
}

function endOfText(text: string, start: number): number {
  let index = start + 1;
  while (text.charAt(index) !== text.charAt(start)) index += text.charAt(index) === '\\' ? 2 : 1;
  return index;
}

/** The chain of calls whose first argument list opens at `start`: `('keys').where(…).where(…)`. */
function chainAt(text: string, start: number): string {
  let end = closing(text, start) + 1;
  for (;;) {
    const [next] = /^\s*(?:\/\/.*\s*)*\.\w+(?:<[^>(]*>)?(?=\()/.exec(text.slice(end)) ?? [];
    if (next === undefined) return text.slice(start, end);
    end = closing(text, end + next.length) + 1;
  }
}

/** The chain without its subqueries, which are queries of their own. */
function withoutSubqueries(chain: string): string {
  const [start] = [...chain.matchAll(START)];
  if (start === undefined) return chain;
  const rest = start.index + start[0].length;
  return chain.slice(0, start.index) + withoutSubqueries(chain.slice(rest + chainAt(chain, rest).length));
}

/** What stands in the brackets of these calls of the chain, up to the first bracket inside. */
const argumentsOf = (chain: string, calls: string): string[] =>
  [...chain.matchAll(new RegExp(`\\.(?:${calls})\\(([^()]*)`, 'g'))].map(([, inside = '']) => inside);

/**
 * Which tables of a query are bound to an organization: by a condition on their own column, or by a join with a table's that is.
 * @param tables the first is the query's, the others are joined
 */
function boundTables(chain: string, tables: readonly string[]): string[] {
  const isIn = (table: string, conditions: readonly string[]): boolean => {
    const column = columnOf(table);
    const pattern = new RegExp(tables.length === 1 ? `'(?:${table}\\.)?${column}'` : `'${table}\\.${column}'`);
    return conditions.some((condition) => pattern.test(condition));
  };
  const conditions = argumentsOf(chain, 'where|whereRef');
  const joins = argumentsOf(chain, 'on|onRef|innerJoin|leftJoin');
  if (!tables.some((table) => isIn(table, conditions))) return [];
  return tables.filter((table) => isIn(table, [...conditions, ...joins]));
}

/** A table that is named by a variable is one of tenants. */
const columnOf = (table: string): string => COLUMN[table] ?? 'organizationId';

const START = /\b(?:selectFrom|updateTable|deleteFrom)(?=\(\s*'?(\w+)'?\))/g;

function queriesOf(file: string): Query[] {
  const text = read(file);
  return [...text.matchAll(START)].map((match) => {
    const declared = [...text.slice(0, match.index).matchAll(/^(?:export )?(?:async )?(?:function|const) (\w+)/gm)].at(
      -1,
    );
    const chain = withoutSubqueries(chainAt(text, match.index + match[0].length));
    const joined = [...chain.matchAll(/\.(?:innerJoin|leftJoin)\(\s*'(\w+)'/g)].map(([, table = '']) => table);
    const tables = [match[1] ?? '', ...joined].filter((table) => table in COLUMN || !TABLES.includes(table));
    const bound = boundTables(chain, tables);
    return {
      name: `${path.basename(file)} ${declared?.[1]}`,
      unbound: tables.filter((table) => !bound.includes(table)),
    };
  });
}

const read = (file: string): string => readFileSync(path.join(folder, file), 'utf8');
/** Migrations change tables, and read nothing of tenants. */
const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
  (name) => name.endsWith('.ts') && !/^migrations\W\d/.test(name),
);

it('every query of the store carries its organization, but for the exceptions', () => {
  const queries = files.flatMap(queriesOf);
  expect(queries.length).toBeGreaterThan(80);
  const unbound = queries.filter((query) => query.unbound.length > 0).map(({ name }) => name);
  expect([...new Set(unbound)].sort()).toEqual(Object.keys(EXCEPTIONS).sort());
});

it('every query is read by this test: it is a chain of calls, and not written by hand', () => {
  const unread = files.flatMap((file) => {
    const text = read(file);
    const queries = text.match(/\b(?:selectFrom|updateTable|deleteFrom)\(/g)?.length ?? 0;
    const joins = text.match(/\.\w+Join\(/g)?.length ?? 0;
    const readJoins = text.match(/\.(?:innerJoin|leftJoin)\(\s*'\w+',/g)?.length ?? 0;
    const byHand = text.match(new RegExp(`\\b(?:FROM|JOIN|UPDATE|INTO) (?:${Object.keys(COLUMN).join('|')})\\b`));
    const complete = queries === [...text.matchAll(START)].length && joins === readJoins && byHand === null;
    return complete ? [] : [file];
  });
  expect(unread).toEqual([]);
});

it('the tables of tenants are found in the migrations', () => {
  expect(Object.keys(COLUMN)).toEqual(
    expect.arrayContaining([
      'keys',
      'rules',
      'calls',
      'call_origins',
      'decisions',
      'audit',
      'subject_rules',
      'provider_keys',
    ]),
  );
});

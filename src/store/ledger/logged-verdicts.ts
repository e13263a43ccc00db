import { hash } from 'node:crypto';
import { idOfBytes, numbersFrom } from '../../domain/id.ts';
import type { RoutingAttempt } from '../../generated/types.ts';
import type { CallVerdictsTable } from '../db/call-tables.ts';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import type { Row } from '../db/tables.ts';
import { type CallFilter, decidedAt, wantedCalls } from './call-log.ts';
import { documentText } from './references.ts';
import { CALL_STATES } from './statements.ts';

/** A decided call by the rows that it refers to: who asked for what, and how it was decided. */
export interface DecidedReference {
  readonly number: number;
  readonly origin: number;
  readonly verdict: number;
  /** The mapping that served it, or was tried for it; null: no provider was called. */
  readonly target: number | null;
}

/** A data document, joined. */
export interface LoggedDocument {
  readonly digest: string;
  readonly text: string;
}

/** A decision as it was judged, which many calls may share. */
export type LoggedVerdict = Row<
  CallVerdictsTable,
  'id' | 'document' | 'outcome' | 'reasonJson' | 'violationsJson' | 'shadowJson' | 'bundleDigest' | 'inputJson'
>;

const PAGE = 5000;
/** Verdicts are long rows. */
const VERDICTS = 250;

/** Decided calls of a range of time that are wanted, oldest first, in pages. All of this file reads many rows: not for the serving thread. */
export function* pagesOfDecided(
  db: Database,
  filter: CallFilter & { readonly from: number; readonly to: number },
): Generator<readonly DecidedReference[]> {
  const decided = wantedCalls({ ...filter, isDecided: true })
    .select(['ledger.number', 'ledger.origin', 'ledger.verdict', 'ledger.target', 'ledger.state'])
    .where('ledger.number', '<', numbersFrom(filter.to))
    .orderBy('ledger.number')
    .limit(PAGE);
  for (let after = numbersFrom(filter.from) - 1; ; ) {
    const rows = db.all(decided.where('ledger.number', '>', after));
    yield rows.flatMap(({ number, origin, verdict, target, state }) =>
      // A call that was refused after its decision, for a limit, names who would have served.
      verdict === null ? [] : [{ number, origin, verdict, target: state === CALL_STATES.released ? null : target }],
    );
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) return;
    after = last.number;
  }
}

/** Lists call origins by the ids of their rows. */
export const listOrigins = (db: Database, organizationId: string, ids: readonly number[]) =>
  chunksOf(ids, PAGE).flatMap((chunk) =>
    db.all(
      build
        .selectFrom('call_origins')
        .select(['id', 'keyId', 'memberId', 'requestedModel'])
        .where('organizationId', '=', organizationId)
        .where('id', 'in', chunk),
    ),
  );

/** The mappings (`provider/model`) that served calls or were tried for them, by the ids of the rows. */
export function listTargets(db: Database, ids: readonly number[]): ReadonlyMap<number, readonly string[]> {
  const rows = chunksOf(ids, PAGE).flatMap((chunk) =>
    db.all(
      build.selectFrom('call_targets').select(['id', 'providerId', 'modelId', 'attemptsJson']).where('id', 'in', chunk),
    ),
  );
  return new Map(
    rows.map(({ id, providerId, modelId, attemptsJson }) => {
      const attempts: Pick<RoutingAttempt, 'provider' | 'model'>[] = JSON.parse(attemptsJson ?? '[]');
      const tried = attempts.map(({ provider, model }) => `${provider}/${model}`);
      const served = providerId === null || modelId === null ? [] : [`${providerId}/${modelId}`];
      return [id, [...new Set([...served, ...tried])]];
    }),
  );
}

/** Ids of verdicts so that those that saw the same data come one after the other. One that retention has deleted meanwhile is left out. */
export function inOrderOfData(db: Database, ids: readonly number[]): readonly number[] {
  const seen = chunksOf(ids, PAGE).flatMap((chunk) =>
    db.all(build.selectFrom('call_verdicts').select(['id', 'document']).where('id', 'in', chunk)),
  );
  seen.sort((a, b) => a.document - b.document || a.id - b.id);
  return seen.map(({ id }) => id);
}

/** Verdicts that calls of the organization refer to, in the order of the ids; one that is gone is left out. */
export function* listVerdicts(db: Database, ids: readonly number[]): Generator<LoggedVerdict> {
  for (const chunk of chunksOf(ids, VERDICTS)) {
    const rows = db.all(
      build
        .selectFrom('call_verdicts')
        .select(['id', 'document', 'outcome', 'reasonJson', 'violationsJson', 'shadowJson', 'bundleDigest'])
        .select('inputJson')
        .where('id', 'in', chunk),
    );
    const byId = new Map(rows.map((row) => [row.id, row]));
    for (const id of chunk) {
      const row = byId.get(id);
      if (row !== undefined) yield row;
    }
  }
}

/** The data document that a decision saw; undefined: it is not on record; `damaged`: it is not what its digest says. */
export function findDocument(db: Database, { document }: LoggedVerdict): LoggedDocument | 'damaged' | undefined {
  const row = db.get(build.selectFrom('data_documents').select(['digest', 'text']).where('id', '=', document));
  if (row === undefined) return undefined;
  const text = documentText(db, row.text);
  return hash('sha256', text) === row.digest ? { digest: row.digest, text } : 'damaged';
}

/** The ids of decisions of the organization, by the numbers of their calls. */
export function decisionIds(
  db: Database,
  organizationId: string,
  numbers: readonly number[],
): ReadonlyMap<number, string> {
  const rows = chunksOf(numbers, PAGE).flatMap((chunk) => db.all(decidedAt(organizationId, chunk)));
  return new Map(rows.map(({ number, id }) => [number, idOfBytes(id, 'dec')]));
}

function chunksOf<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  );
}

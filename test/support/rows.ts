import { setTimeout as sleep } from 'node:timers/promises';
import { build } from '../../src/store/db/sql.ts';
import type { TestGateway } from './gateway.ts';
import type { Answer } from './request.ts';

const selectCalls = () => build.selectFrom('calls').selectAll().orderBy('id');

/** The ledger's row of one call, all columns. */
export type CallRow = ReturnType<typeof callRows>[number];

/** Every call's row, oldest first. */
export const callRows = ({ db }: Pick<TestGateway, 'db'>) => db.all(selectCalls());

/** The one row of the call that this answer belongs to. */
export function callRow(gateway: TestGateway, answer: Pick<Answer, 'headers'>): CallRow {
  const requestId = String(answer.headers['x-request-id']);
  const rows = gateway.db.all(selectCalls().where('requestId', '=', requestId));
  const [row] = rows;
  if (row === undefined || rows.length !== 1) throw new Error(`${rows.length} rows for ${requestId}`);
  return row;
}

export const decisionRows = ({ db }: Pick<TestGateway, 'db'>) =>
  db.all(build.selectFrom('decisions').selectAll().orderBy('id'));

/** What is kept of a key's spend. */
export function keySums({ db }: Pick<TestGateway, 'db'>, keyId: string) {
  const row = db.get(
    build
      .selectFrom('keys')
      .select(['usage', 'reserved', 'currentPeriodUsage', 'currentPeriodReserved', 'currentPeriodStartedAt'])
      .where('id', '=', keyId),
  );
  if (row === undefined) throw new Error(`there is no key ${keyId}`);
  return row;
}

/** What is kept of the spend under a budget. */
export function budgetSums({ db }: Pick<TestGateway, 'db'>, subjectId: string) {
  const row = db.get(build.selectFrom('budgets').selectAll().where('subjectId', '=', subjectId));
  if (row === undefined) throw new Error(`there is no budget of ${subjectId}`);
  return row;
}

/** The row of a call whose client has left: waits until it has an end. */
export async function settled(gateway: TestGateway, requestId: string): Promise<CallRow> {
  for (;;) {
    const row = gateway.db.get(selectCalls().where('requestId', '=', requestId));
    if (row !== undefined && row.state !== 'open') return row;
    await sleep(5);
  }
}

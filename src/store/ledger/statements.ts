import { type Expression, sql } from 'kysely';
import { MAX_AMOUNT } from '../../domain/limits.ts';
import { STORED_TOKENS } from '../../domain/usage.ts';
import type { Flag } from '../db/call-tables.ts';
import type { Database } from '../db/database.ts';
import { build, Parameter, prepareHot } from '../db/sql.ts';
import type { SpendColumns } from '../db/tables.ts';
import { KEY_STATE_COLUMNS } from '../tenants/key-records.ts';

/** The integers that stand for the states of calls; the views know them too. */
export const CALL_STATES = { open: 0, settled: 1, denied: 2, recovered: 3, released: 4 } as const;

const isOpen = sql<boolean>`state = ${sql.lit(CALL_STATES.open)}`;

/** The index `open_windows` is of these open calls. */
const inAnyWindow = sql<boolean>`coalesce(periodStartedAt, memberPeriodStartedAt, projectPeriodStartedAt, organizationPeriodStartedAt) IS NOT NULL`;

/** Adds to a sum, which stays at the largest amount instead of overflowing. */
const increased = (column: keyof SpendColumns, amount: Parameter<bigint>) =>
  sql<bigint>`min(${sql.ref(column)} + ${amount}, ${sql.raw(String(MAX_AMOUNT))})`;

const decreased = (column: keyof SpendColumns, amount: Parameter<bigint>) =>
  sql<bigint>`max(${sql.ref(column)} - ${amount}, 0)`;

type Window = Expression<number | null>;

/** The value only while `window`, in which the call was opened, still runs. */
const inWindow = (window: Window, column: keyof SpendColumns, value: Expression<bigint>) =>
  sql<bigint>`CASE WHEN currentPeriodStartedAt = ${window} THEN ${value} ELSE ${sql.ref(column)} END`;

const number = new Parameter<number>();
const id = new Parameter<Buffer>();
const origin = new Parameter<number>();
const verdict = new Parameter<number>();
const target = new Parameter<number | null>();
const now = new Parameter<number>();
const requestId = new Parameter<Buffer>();
const clientRequestId = new Parameter<string | null>();
const reservation = new Parameter<bigint>();
const cost = new Parameter<bigint>();
const keyId = new Parameter<string>();
const memberId = new Parameter<string>();
const projectId = new Parameter<string>();
const organizationId = new Parameter<string>();
const subjectId = new Parameter<string>();
const startedAt = new Parameter<number>();
const keyWindow = new Parameter<number | null>();
const memberWindow = new Parameter<number | null>();
const projectWindow = new Parameter<number | null>();
const organizationWindow = new Parameter<number | null>();
const sharedWindow = new Parameter<number | null>();
const state = new Parameter<number>();
const statusCode = new Parameter<number>();
const errorCode = new Parameter<string | null>();
const cached = new Parameter<Flag>();
const tookMs = new Parameter<number | null>();
const timesJson = new Parameter<string | null>();

/** Holds back what a call may cost, in the window in which it was opened. */
const held = (window: Window) => ({
  reserved: increased('reserved', reservation),
  currentPeriodReserved: inWindow(window, 'currentPeriodReserved', increased('currentPeriodReserved', reservation)),
});

/** Books what a call cost, in the window in which it was opened, and frees what was held back for it. */
const booked = (window: Window) => ({
  usage: increased('usage', cost),
  reserved: decreased('reserved', reservation),
  currentPeriodUsage: inWindow(window, 'currentPeriodUsage', increased('currentPeriodUsage', cost)),
  currentPeriodReserved: inWindow(window, 'currentPeriodReserved', decreased('currentPeriodReserved', reservation)),
});

/** Window of the budget in a row, by its scope. */
const budgetWindow = sql<number | null>`CASE scope
  WHEN 'member' THEN ${memberWindow} WHEN 'project' THEN ${projectWindow} ELSE ${organizationWindow} END`;

/** The subjects of a call that may have budgets. */
const budgetSubjects = [memberId, projectId, organizationId];

const opened = { number, id, origin, verdict, createdAt: now, requestId, clientRequestId };

const insertOpenCall = build.insertInto('ledger').values({ ...opened, state: sql.lit(CALL_STATES.open) });

const insertLimitedCall = build.insertInto('ledger').values({
  ...opened,
  state: sql.lit(CALL_STATES.open),
  reservation,
  periodStartedAt: keyWindow,
  memberPeriodStartedAt: memberWindow,
  projectPeriodStartedAt: projectWindow,
  organizationPeriodStartedAt: organizationWindow,
  sharedPeriodStartedAt: sharedWindow,
});

const insertFinishedCall = build
  .insertInto('ledger')
  .values({ ...opened, state, settledAt: now, cached, target, statusCode, errorCode, tookMs, timesJson });

/** In the order of `STORED_TOKENS`. */
const tokens = STORED_TOKENS.map((name) => ({ name, count: new Parameter<number>() }));
const priceUnknown = new Parameter<Flag>();
const costDetailsJson = new Parameter<string | null>();
const usageEstimated = new Parameter<Flag>();

/** Settles an open call and no other. Its origin is of its organization. */
const settleOpenCall = build
  .updateTable('ledger')
  .set({
    state,
    settledAt: now,
    cost,
    priceUnknown,
    costDetailsJson,
    ...Object.fromEntries(tokens.map(({ name, count }) => [name, count])),
    usageEstimated,
    target,
    statusCode,
    errorCode,
    tookMs,
    timesJson,
  })
  .where('number', '=', number)
  .where('origin', '=', origin)
  .where(isOpen);

/** More is held back for an open call. */
const reserveMore = build
  .updateTable('ledger')
  .set({ reservation: sql<bigint>`reservation + ${reservation}` })
  .where('number', '=', number)
  .where('origin', '=', origin)
  .where(isOpen);

const greatestNumber = build.selectFrom('ledger').select(({ fn }) => fn.max('number').as('number'));

/** The number of the last call, but where that was deleted not below the mark. */
const lastNumber = build
  .selectFrom('ledger_mark')
  .select(sql<number>`max(openFrom, coalesce(${greatestNumber}, 0))`.as('number'));

const firstOpen = build
  .selectFrom('ledger')
  .select('number')
  .where('number', '>=', sql<number>`openFrom`)
  .where(isOpen)
  .orderBy('number')
  .limit(sql.lit(1));

/** To the first call that is open, else to the last call: nothing below is open. */
const moveMark = build.updateTable('ledger_mark').set({ openFrom: sql<number>`coalesce(${firstOpen}, ${lastNumber})` });

const selectKey = build
  .selectFrom('keys')
  .innerJoin('organizations', 'organizations.id', 'keys.organizationId')
  .select(KEY_STATE_COLUMNS)
  .select('organizations.ruleRevision')
  // As subqueries: with bare parameters in a join SQLite plans the statement again for every value.
  .where('keys.id', '=', sql<string>`(SELECT ${keyId})`)
  .where('keys.organizationId', '=', sql<string>`(SELECT ${organizationId})`);

const newPeriod = {
  currentPeriodStartedAt: startedAt,
  currentPeriodUsage: sql.lit(0n),
  currentPeriodReserved: sql.lit(0n),
};

const startPeriod = build
  .updateTable('keys')
  .set(newPeriod)
  .where('id', '=', subjectId)
  .where('organizationId', '=', organizationId);

const startBudgetPeriod = build
  .updateTable('budgets')
  .set(newPeriod)
  .where('subjectId', '=', subjectId)
  .where('organizationId', '=', organizationId);

/** Begin of the latest window of a key, member, project or organization that open calls belong to, or a later one that keys share. */
const latestOpenPeriod = build
  .selectFrom('ledger')
  .innerJoin('call_origins', 'call_origins.id', 'ledger.origin')
  .select(
    sql<number | null>`max(max(coalesce(sharedPeriodStartedAt, 0), coalesce(CASE ${subjectId}
      WHEN keyId THEN periodStartedAt
      WHEN memberId THEN memberPeriodStartedAt
      WHEN projectId THEN projectPeriodStartedAt
      WHEN organizationId THEN organizationPeriodStartedAt END, 0)))`.as('startedAt'),
  )
  .where(isOpen)
  .where(inAnyWindow)
  .where('call_origins.organizationId', '=', organizationId);

const holdBack = build
  .updateTable('keys')
  .set(held(keyWindow))
  .where('id', '=', keyId)
  .where('organizationId', '=', organizationId);

const holdBackBudgets = build
  .updateTable('budgets')
  .set(held(budgetWindow))
  .where('subjectId', 'in', budgetSubjects)
  .where('organizationId', '=', organizationId);

/** Books a call for which nothing was held back, in no window, to its key. */
const bookUnlimited = build
  .updateTable('keys')
  .set({ usage: increased('usage', cost), lastUsedAt: now })
  .where('id', '=', keyId)
  .where('organizationId', '=', organizationId);

/** Books a call to its key. */
const bookCost = build
  .updateTable('keys')
  .set({ ...booked(keyWindow), lastUsedAt: now })
  .where('id', '=', keyId)
  .where('organizationId', '=', organizationId);

/** Books a call to the key whose limits its key shares. */
const bookShared = build
  .updateTable('keys')
  .set(booked(sharedWindow))
  .where('id', '=', subjectId)
  .where('organizationId', '=', organizationId);

/** Books a call to the budgets that there are now, also those that were not there when it was opened. */
const bookBudgets = build
  .updateTable('budgets')
  .set(booked(budgetWindow))
  .where('subjectId', 'in', budgetSubjects)
  .where('organizationId', '=', organizationId);

const touchKey = build
  .updateTable('keys')
  .set({ lastUsedAt: now })
  .where('id', '=', keyId)
  .where('organizationId', '=', organizationId);

/** Begin of the recurring windows to which a call's cost belongs: of its key, of the budgets, and of the limits that it shares; null where there is none. */
export interface CallWindows {
  readonly periodStartedAt: number | null;
  readonly memberPeriodStartedAt: number | null;
  readonly projectPeriodStartedAt: number | null;
  readonly organizationPeriodStartedAt: number | null;
  readonly sharedPeriodStartedAt: number | null;
}

/** The windows in the order of the places of `insertLimitedCall`. */
export const windowValues = (windows: CallWindows) =>
  [
    windows.periodStartedAt,
    windows.memberPeriodStartedAt,
    windows.projectPeriodStartedAt,
    windows.organizationPeriodStartedAt,
    windows.sharedPeriodStartedAt,
  ] as const;

/** Owners of the budgets, and the windows. */
const underBudgets = [memberId, projectId, organizationId, memberWindow, projectWindow, organizationWindow] as const;

/** The values of `underBudgets`. */
export const budgetValues = (
  call: { readonly memberId: string; readonly projectId: string; readonly organizationId: string },
  windows: Omit<CallWindows, 'periodStartedAt' | 'sharedPeriodStartedAt'>,
) =>
  [
    call.memberId,
    call.projectId,
    call.organizationId,
    windows.memberPeriodStartedAt,
    windows.projectPeriodStartedAt,
    windows.organizationPeriodStartedAt,
  ] as const;

const openPlaces = [number, id, origin, verdict, now, requestId, clientRequestId] as const;

/** The statements of the hot path, compiled and prepared once for a connection. */
export const prepareLedgerStatements = ({ connection }: Database) => ({
  insertOpenCall: prepareHot(connection, openPlaces, insertOpenCall.compile()),
  insertLimitedCall: prepareHot(
    connection,
    [...openPlaces, reservation, keyWindow, memberWindow, projectWindow, organizationWindow, sharedWindow],
    insertLimitedCall.compile(),
  ),
  insertFinishedCall: prepareHot(
    connection,
    [...openPlaces, state, cached, target, statusCode, errorCode, tookMs, timesJson],
    insertFinishedCall.compile(),
  ),
  settleOpenCall: prepareHot(
    connection,
    [
      state,
      now,
      cost,
      priceUnknown,
      costDetailsJson,
      ...tokens.map(({ count }) => count),
      usageEstimated,
      target,
      statusCode,
      errorCode,
      tookMs,
      timesJson,
      number,
      origin,
    ],
    settleOpenCall.compile(),
  ),
  reserveMore: prepareHot(connection, [reservation, number, origin], reserveMore.compile()),
  lastNumber: prepareHot(connection, [], lastNumber.compile()),
  moveMark: prepareHot(connection, [], moveMark.compile()),
  selectKey: prepareHot(connection, [keyId, organizationId], selectKey.compile()),
  latestOpenPeriod: prepareHot(connection, [subjectId, organizationId], latestOpenPeriod.compile()),
  startPeriod: prepareHot(connection, [startedAt, subjectId, organizationId], startPeriod.compile()),
  startBudgetPeriod: prepareHot(connection, [startedAt, subjectId, organizationId], startBudgetPeriod.compile()),
  holdBack: prepareHot(connection, [reservation, keyWindow, keyId, organizationId], holdBack.compile()),
  holdBackBudgets: prepareHot(connection, [reservation, ...underBudgets], holdBackBudgets.compile()),
  bookUnlimited: prepareHot(connection, [cost, now, keyId, organizationId], bookUnlimited.compile()),
  bookCost: prepareHot(connection, [cost, reservation, keyWindow, now, keyId, organizationId], bookCost.compile()),
  bookShared: prepareHot(
    connection,
    [cost, reservation, sharedWindow, subjectId, organizationId],
    bookShared.compile(),
  ),
  bookBudgets: prepareHot(connection, [cost, reservation, ...underBudgets], bookBudgets.compile()),
  touchKey: prepareHot(connection, [now, keyId, organizationId], touchKey.compile()),
});

export type LedgerStatements = ReturnType<typeof prepareLedgerStatements>;

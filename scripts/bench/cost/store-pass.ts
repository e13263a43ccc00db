import { closeSync, openSync, readSync } from 'node:fs';
import { endianness } from 'node:os';
import Database from 'better-sqlite3';
import { currentStep } from './current-step.ts';
import { add, type CostBySteps } from './figures.ts';
import type { Pass } from './pass.ts';

/** Where the index of the write-ahead log says how many pages the log has (SQLite's "WAL-index format", `mxFrame`). */
const PAGES_AT = 16;

let cost: CostBySteps = {};
/** Puts the methods back as they were. */
let restore: (() => void)[] = [];

/** Pages in the write-ahead log of a database, now. */
function loggedPages(path: string): number {
  const bytes = Buffer.alloc(4);
  const file = openSync(`${path}-shm`, 'r');
  try {
    readSync(file, bytes, 0, bytes.length, PAGES_AT);
  } finally {
    closeSync(file);
  }
  return endianness() === 'LE' ? bytes.readUInt32LE() : bytes.readUInt32BE();
}

/** Values that a statement is given: in lists, by name, or one by one. */
const boundIn = (parameters: readonly unknown[]): number =>
  parameters.reduce<number>((count, each) => {
    if (Array.isArray(each)) return count + each.length;
    return count + (typeof each === 'object' && each !== null ? Object.keys(each).length : 1);
  }, 0);

const isStatement = (value: unknown): value is Database.Statement =>
  typeof value === 'object' && value !== null && 'source' in value && 'database' in value;

type Method = 'run' | 'get' | 'all';

function rowsOf(method: Method, result: unknown): number {
  if (method === 'all') return Array.isArray(result) ? result.length : 0;
  if (method === 'get') return result === undefined ? 0 : 1;
  return typeof result === 'object' && result !== null && 'changes' in result ? Number(result.changes) : 0;
}

function counted(method: Method, original: CallableFunction) {
  return function (this: unknown, ...parameters: unknown[]): unknown {
    if (!isStatement(this)) throw new TypeError('the bench counts what statements do');
    const { source, database } = this;
    const step = currentStep();
    const isCommit = source === 'COMMIT';
    const before = isCommit ? loggedPages(database.name) : 0;
    const result: unknown = Reflect.apply(original, this, parameters);
    add(cost, step, 'statements', 1);
    add(cost, step, 'values', boundIn(parameters));
    add(cost, step, method === 'run' ? 'rowsWritten' : 'rowsRead', rowsOf(method, result));
    if (isCommit) {
      const after = loggedPages(database.name);
      add(cost, step, 'commits', 1);
      // A log that was moved into the file begins again.
      add(cost, step, 'pages', after >= before ? after - before : after);
    }
    return result;
  };
}

/** What goes through better-sqlite3 on the main thread. */
export const storePass: Pass = {
  async start() {
    cost = {};
    const memory = new Database(':memory:');
    const prototype: unknown = Object.getPrototypeOf(memory.prepare('SELECT 1'));
    memory.close();
    if (typeof prototype !== 'object' || prototype === null) throw new Error('statements have no prototype');
    restore = (['run', 'get', 'all'] as const).map((method) => {
      const original: unknown = Reflect.get(prototype, method);
      if (typeof original !== 'function') throw new Error(`statements have no ${method}`);
      if (!Reflect.set(prototype, method, counted(method, original))) throw new Error(`${method} cannot be counted`);
      return () => void Reflect.set(prototype, method, original);
    });
  },
  async stop() {
    for (const put of restore) put();
    return { cost };
  },
};

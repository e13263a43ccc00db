// What a call may cost: which step a figure belongs to, when a budget is exceeded, and that the page shows the budget.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Budget, excesses, readBudget } from '../../scripts/bench/cost/budget.ts';
import { isOnPage } from '../../scripts/bench/cost/cost-tables.ts';
import { OURS, stepOf } from '../../scripts/bench/cost/steps.ts';
import { stepOfLine } from '../../scripts/bench/cost/system-calls.ts';
import { root } from '../support/pages.ts';

describe('a step', () => {
  const frame = (url: string, name = '') => ({ name, url });

  it('has only files and folders that exist', () => {
    expect(OURS.map(([, place]) => place).filter((place) => !existsSync(path.join(root, place)))).toEqual([]);
  });

  it('is that of the innermost function that belongs to one', () => {
    const writer = frame('file:///gateway/src/store/store.ts', 'flush');
    const ledger = 'file:///gateway/src/store/ledger/ledger.ts';
    const sql = frame('file:///gateway/src/store/db/sql.ts', 'run');
    const undici = 'file:///gateway/node_modules/undici/lib/dispatcher/client-h1.js';
    expect([
      stepOf([sql, frame(ledger, 'openCall'), writer]),
      stepOf([sql, frame(ledger, 'settleCall'), writer]),
      stepOf([frame('node:buffer', 'concat'), writer]),
      stepOf([frame('', 'writev'), frame(undici, 'writeH1')]),
      stepOf([frame(undici, 'onData')]),
      stepOf([frame('', '(garbage collector)'), writer]),
      stepOf([frame('', '(program)')]),
    ]).toEqual(['open', 'settle', 'commit', 'send', 'receive', 'collector', 'elsewhere']);
  });

  it('of a system call follows from the file', () => {
    const ports = { gateway: 8080, upstream: 9000 };
    expect(
      [
        'read(23<TCP:[127.0.0.1:8080->127.0.0.1:5000]>, ""..., 65536) = 539',
        'write(23<TCP:[127.0.0.1:8080->127.0.0.1:5000]>, ""..., 1200) = 1200',
        'writev(24<TCP:[127.0.0.1:5001->127.0.0.1:9000]>, [{...}], 2) = 700',
        'read(24<TCP:[127.0.0.1:5001->127.0.0.1:9000]>, ""..., 65536) = 620',
        'pwrite64(19</data/portcullis.sqlite-wal>, ""..., 4096, 32) = 4096',
        'read(15<anon_inode:[eventfd]>, ""..., 1024) = 8',
        'getpid() = 12',
      ].map((line) => stepOfLine(line, ports)),
    ).toEqual(['http', 'answer', 'send', 'receive', 'commit', 'elsewhere', 'elsewhere']);
  });
});

describe('the budget', () => {
  const nothing = { 'capped key': {}, 'cache hit': {}, denial: {}, 'stream chunk': {} };
  const costing = (decide: object, send: object = {}): Budget => ({
    node: '1.2.3',
    counter: null,
    instructions: null,
    calls: { ...nothing, 'plain call': { decide, send } },
  });

  it('is exceeded by a figure of a step that is more than 15 % larger, and by one that was not there', () => {
    const budget = costing({ bytes: 10_000, promises: 10, cpuUs: 50 });
    const within = costing({ bytes: 11_500, promises: 11.5, cpuUs: 90 });
    const over = costing({ bytes: 11_501, promises: 8 }, { commits: 1 });
    expect([excesses(budget, within), excesses(budget, over)]).toEqual([
      [],
      [
        { scenario: 'plain call', what: 'decide: bytes', figure: 11_501, budget: 10_000 },
        { scenario: 'plain call', what: 'send: commits', figure: 1, budget: 0 },
      ],
    ]);
  });

  it('has room for what the event loop does between calls', () => {
    const budget = costing({ bytes: 100, timers: 0.01, pages: 0 });
    expect(excesses(budget, costing({ bytes: 600, timers: 0.4, pages: 0.5 }))).toEqual([]);
  });

  it('bounds the instructions of a call, where they were counted in the same way', () => {
    const counting = (counter: 'perf' | 'qemu', plain: number): Budget => {
      const others = { 'capped key': 1000, 'cache hit': 1000, denial: 1000, 'stream chunk': 10 };
      return { ...costing({}), counter, instructions: { 'plain call': plain, ...others } };
    };
    const measured = [counting('qemu', 1150), counting('qemu', 1151), counting('perf', 2000), costing({})];
    expect(measured.map((each) => excesses(counting('qemu', 1000), each))).toEqual([
      [],
      [{ scenario: 'plain call', what: 'instructions, thousands', figure: 1151, budget: 1000 }],
      [],
      [],
    ]);
  });

  it('stands on the page', () => {
    expect(isOnPage(readBudget())).toBe(true);
  });
});

// `decisions tail` and `calls tail`: what is made while they run, once, when it is over.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { cliCommand } from '../../scripts/runtime.js';
import { idLike } from '../../src/domain/id.ts';
import { build } from '../../src/store/db/sql.ts';
import { CALL_STATES } from '../../src/store/ledger/statements.ts';
import { newDecision } from '../store/fixture.ts';
import { childEnv } from '../support/network-guard-env.ts';
import { insertCall, type Stored, type StoredCall } from '../support/stored-calls.ts';
import { type CommandLine, createCommandLine } from './command-line.ts';

let portcullis: CommandLine;
let whose: StoredCall;
let time = Date.now();
let tail: ChildProcess | undefined;
let printed = '';

beforeEach(async () => {
  portcullis = await createCommandLine();
  const { organizationId, projectId } = portcullis.first;
  const key = await portcullis.store.read((db) =>
    db.get(build.selectFrom('keys').selectAll().where('kind', '=', 'regular')),
  );
  whose = { organizationId, projectId, keyId: key?.id ?? '', memberId: key?.createdBy ?? '', requestedModel: 'small' };
  printed = '';
});
afterEach(() => {
  tail?.kill('SIGKILL');
  portcullis.close();
});

const store = (call: Partial<StoredCall> = {}, isDecided = true): Promise<Stored> => {
  time += 1000;
  return portcullis.store.write((db) =>
    insertCall(db, time, { ...whose, ...call }, isDecided ? newDecision() : undefined),
  );
};

const decisionOf = ({ id }: Stored): string => idLike(id, 'dec');

/** Starts it, and waits until it follows. */
async function start(...args: string[]): Promise<ChildProcess> {
  const child = spawn(process.execPath, [...cliCommand.args, ...args], {
    env: childEnv({ ...cliCommand.env, DATA_DIR: portcullis.folder }),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
  });
  tail = child;
  return child;
}

const seen = (text: string): Promise<void> =>
  vi.waitFor(() => expect(printed).toContain(text), { timeout: 20_000, interval: 50 });

const ids = (field: string): unknown[] =>
  printed
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line)[field]);

describe('portcullis decisions tail', () => {
  it('shows the last ones, then each once when its call is over, and ends with SIGINT', async () => {
    await store();
    const [second, third] = [await store(), await store()];
    const open = await store({ state: 'open', settledAt: null, statusCode: null });
    const child = await start('decisions', 'tail', '--json', '--last', '3');
    await seen(decisionOf(third));
    const denied = await store({ state: 'denied', statusCode: 403 });
    await seen(decisionOf(denied));
    await store({}, false); // Nothing was decided.
    await portcullis.store.write((db) =>
      db.run(
        build
          .updateTable('ledger')
          .set({ state: CALL_STATES.settled, statusCode: 200 })
          .where('number', '=', open.number),
      ),
    );
    await seen(decisionOf(open));
    const last = await store();
    await seen(decisionOf(last));
    child.kill('SIGINT');
    expect(await once(child, 'exit')).toEqual([0, null]);
    expect(ids('id')).toEqual([second, third, denied, open, last].map(decisionOf));
    expect(JSON.parse(printed.trimEnd().split('\n')[3] ?? '')).toMatchObject({ statusCode: 200 });
  });

  it('shows those that are asked for, in columns under their titles', async () => {
    const child = await start('decisions', 'tail', '--wide', '--model', 'large', '--address', '10.0.0.0/8', '-n', '0');
    await vi.waitFor(
      async () => {
        await store({ requestedModel: 'large', clientAddress: '10.1.2.3', providerId: 'acme', modelId: 'large' });
        expect(printed).toContain('10.1.2.3');
      },
      { timeout: 20_000, interval: 500 },
    );
    await store({ clientAddress: '10.1.2.3' });
    await store({ requestedModel: 'large', clientAddress: '11.1.2.3' });
    const last = await store({ requestedModel: 'large', clientAddress: '10.255.255.255' });
    await seen(decisionOf(last));
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
    const [titles, ...rows] = printed
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/ {2,}/));
    expect(titles).toEqual([
      ...['TIME', 'DECISION', 'OUTCOME', 'REASON', 'KEY', 'MODEL'],
      ...['SERVED BY', 'FROM', 'KEY ID'],
    ]);
    expect(rows[0]?.slice(2, 8)).toEqual(['permit', '-', 'First gateway key', 'large', 'acme/large', '10.1.2.3']);
    expect(rows.map((row) => row[7])).toEqual([...rows.slice(1).map(() => '10.1.2.3'), '10.255.255.255']);
  });

  it('ends when nobody reads any more', async () => {
    await store();
    const child = await start('decisions', 'tail');
    await seen('permit');
    child.stdout?.destroy();
    const exit = once(child, 'exit');
    const feeding = setInterval(() => void store(), 200);
    expect(await exit).toEqual([0, null]);
    clearInterval(feeding);
  });
});

describe('portcullis calls tail', () => {
  it('shows calls, also those that nothing was decided of', async () => {
    const first = await store({}, false);
    const child = await start('calls', 'tail', '--json');
    await seen(first.id);
    const last = await store();
    await seen(last.id);
    child.kill('SIGINT');
    await once(child, 'exit');
    expect(ids('id')).toEqual([first.id, last.id]);
  });
});

import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { RotatedFile } from '../../src/lib/files.ts';
import { temporaryDirectory } from '../store/fixture.ts';

const begun = (maxBytes = 10, kept = 2) => {
  const file = path.join(temporaryDirectory(), 'log.ndjson');
  const read = (age?: number): string | undefined => {
    const name = age === undefined ? file : `${file}.${age}`;
    return existsSync(name) ? readFileSync(name, 'utf8') : undefined;
  };
  return { file, read, open: () => new RotatedFile({ path: file, maxBytes, kept }) };
};

it('grows, and is put aside when it is large enough, with so many as are kept', () => {
  const { file, read, open } = begun();
  const log = open();
  const rotated = ['one\n', 'two\nthree\n', 'four five six\n', '7890123456\n', 'seven\n'].map((lines) => {
    log.append(lines);
    return log.rotate();
  });
  log.close();
  expect(rotated).toEqual([false, true, true, true, false]);
  expect([read(), read(1), read(2), read(3)]).toEqual(['seven\n', '7890123456\n', 'four five six\n', undefined]);
  expect(statSync(file).mode & 0o777).toBe(0o640);
});

it('loses the line that a crash cut off, however long, and nothing else', () => {
  const { file, read, open } = begun(1e9);
  for (const rest of ['{"half":', 'x'.repeat(200_000)]) {
    writeFileSync(file, `one\ntwo\n${rest}`);
    const log = open();
    expect(log.size).toBe(8);
    log.append('three\n');
    log.close();
    expect(read()).toBe('one\ntwo\nthree\n');
  }
  writeFileSync(file, 'no line at all');
  expect(open().size).toBe(0);
});

it('is read from a place on, or from its begin where it is shorter', () => {
  const { open } = begun(1e9);
  const log = open();
  log.append('one\nzwölf\n');
  expect([4, 0, 11, 99].map((start) => log.readFrom(start))).toEqual(['zwölf\n', 'one\nzwölf\n', '', 'one\nzwölf\n']);
  log.close();
});

it('is begun again where someone moved it away', () => {
  const { file, read, open } = begun(1e9);
  const log = open();
  log.append('one\n');
  renameSync(file, `${file}.moved`);
  log.append('two\n');
  log.close();
  expect([read(), readFileSync(`${file}.moved`, 'utf8')]).toEqual(['two\n', 'one\n']);
});

it('fails as the system does, and goes on when it can', () => {
  const { file, read, open } = begun();
  mkdirSync(file);
  const log = open();
  expect(() => log.append('one\n')).toThrow(/EISDIR/);
  rmSync(file, { recursive: true });
  log.append('two\n');
  log.close();
  expect(read()).toBe('two\n');
});

// A module gets one memory of bounded size. Whatever else could take memory is refused before it runs.
import { readdirSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { readBundle } from '../../src/policy/bundle.ts';
import { createWasmEngine } from '../../src/policy/engine.ts';
import { moduleFault } from '../../src/policy/module-bounds.ts';

const FIXTURES = new URL('../fixtures/policy/', import.meta.url);

const number = (value: number): number[] =>
  value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...number(Math.floor(value / 0x80))];

/** A valid module of these sections. */
function moduleOf(...sections: readonly (readonly [id: number, ...content: number[]])[]): Buffer {
  const written = sections.map(([id, ...content]) => Buffer.from([id, ...number(content.length), ...content]));
  const wasm = Buffer.concat([Buffer.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]), ...written]);
  new WebAssembly.Module(wasm);
  return wasm;
}

/** The section of code of one function that does nothing, at length. */
const code = (bytes: number): [number, ...number[]] => {
  const body = [0, ...new Array<number>(bytes - 2).fill(0x01), 0x0b];
  return [10, 1, ...number(bytes), ...body];
};
const NOTHING = [1, 1, 0x60, 0, 0] as const;
const ONE_FUNCTION = [3, 1, 0] as const;
const MIB = 1024 * 1024;

it('takes what OPA makes', () => {
  expect(moduleFault(readBundle().wasm)).toBeNull();
  const names = readdirSync(FIXTURES).filter((name) => name.endsWith('.wasm.gz'));
  expect(names.length).toBeGreaterThan(3);
  for (const name of names) expect(moduleFault(gunzipSync(readFileSync(new URL(name, FIXTURES))))).toBeNull();
  expect(moduleFault(moduleOf(NOTHING, ONE_FUNCTION, code(MIB)))).toBeNull();
  expect(moduleFault(moduleOf([4, 1, 0x70, 0x01, 0, ...number(100_000)]))).toBeNull();
});

it.each<[string, Buffer, string]>([
  ['a memory of its own', moduleOf([5, 1, 0, 1]), 'It has a memory of its own.'],
  ['a type of objects', moduleOf([1, 1, 0x5f, 0]), 'It has types other than functions.'],
  ['objects as values', moduleOf([1, 1, 0x60, 1, 0x6f, 0]), 'It has functions of other values than numbers.'],
  [
    'two tables',
    moduleOf([4, 2, 0x70, 1, 0, 1, 0x70, 1, 0, 1]),
    'It has other tables than one of functions, with a maximum.',
  ],
  ['a table of objects', moduleOf([4, 1, 0x6f, 1, 0, 1]), 'It has other tables than one of functions, with a maximum.'],
  [
    'a table without a maximum',
    moduleOf([4, 1, 0x70, 0, 1]),
    'It has other tables than one of functions, with a maximum.',
  ],
  [
    'a table of 100,001 entries',
    moduleOf([4, 1, 0x70, 1, 0, ...number(100_001)]),
    'Its table may have more than 100000 entries.',
  ],
  ['a tag', moduleOf(NOTHING, [13, 1, 0, 0]), 'It has a section 13, which OPA does not write.'],
  ['a huge function', moduleOf(NOTHING, ONE_FUNCTION, code(MIB + 1)), 'It has a function of more than 1048576 bytes.'],
])('refuses %s', (_, wasm, fault) => {
  expect(moduleFault(wasm)).toBe(fault);
  expect(() => createWasmEngine(wasm)).toThrow(
    expect.objectContaining({ cause: expect.objectContaining({ message: fault }) }),
  );
});

import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Database, openDatabase } from '../../../src/store/db/database.ts';
import { cutText, joinStored, prepareTextParts, readJoined, type TextParts } from '../../../src/store/db/text-parts.ts';
import { getDataDocument } from '../../../src/store/ledger/references.ts';
import { costing, decisionIdOf, newCall, newDecision, storeWithTenant } from '../fixture.ts';

/** As a long rule has it: entries of some 40 characters. */
const textOf = (entries: readonly number[]): string =>
  JSON.stringify(Object.fromEntries(entries.map((entry) => [`model-${entry}`, [`rule_${entry * 7919}`]])));

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

function database(): { db: Database; parts: TextParts; stored: () => number } {
  const db = openDatabase(':memory:', { create: true });
  onTestFinished(() => db.close());
  const sum = db.connection.prepare<[], number>('SELECT coalesce(sum(octet_length(text)), 0) FROM rule_parts').pluck();
  return { db, parts: prepareTextParts(db, 'rule_parts'), stored: () => sum.get() ?? 0 };
}

describe('a text', () => {
  test('that is short is stored as it is, and makes no part', () => {
    const { parts, stored } = database();
    const text = `{"a":"${'x'.repeat(2040)}"}`;
    expect([text.length, parts.store('rule_1', text), stored()]).toEqual([2048, text, 0]);
  });

  test('that is long is stored in parts, and read as it was', () => {
    const { parts } = database();
    for (const count of [80, 100, 1000, 20_000]) {
      const text = textOf(numbers(count));
      const stored = parts.store('rule_1', text);
      expect(stored).toMatch(/^@\d+$/);
      expect(parts.read(stored)).toBe(text);
    }
  });

  test('is read as it was, whatever it holds', () => {
    const { parts } = database();
    const part = fc.oneof(fc.string({ unit: 'binary', maxLength: 50 }), fc.constantFrom('@1', ',', '😀', 'é'));
    fc.assert(
      fc.property(fc.array(part, { minLength: 100, maxLength: 400 }), fc.nat(300), (texts, times) => {
        const text = JSON.stringify(texts.join('').repeat(1 + (times % 5)));
        expect(parts.read(parts.store('rule_1', text))).toBe(text);
      }),
      { numRuns: 50 },
    );
  });

  test.each([
    ['grows by an entry at its begin', [-1, ...numbers(5000)]],
    ['grows by an entry in its middle', numbers(5000).toSpliced(2500, 0, 9999)],
    ['grows by an entry at its end', numbers(5001)],
    ['loses an entry', numbers(5000).toSpliced(1234, 1)],
    ['has another entry', numbers(5000).toSpliced(1234, 1, 9999)],
  ])('that %s is stored by what was changed', (_, changed) => {
    const { parts, stored } = database();
    parts.store('rule_1', textOf(numbers(5000)));
    const before = stored();
    expect(before).toBeGreaterThan(150_000);
    parts.store('rule_1', textOf(changed));
    expect(stored() - before).toBeLessThan(12_000);
  });

  test('that comes back is not stored again', () => {
    const { parts, stored } = database();
    const [one, other] = [textOf(numbers(5000)), textOf(numbers(5000).filter((entry) => entry % 3 > 0))];
    const first = parts.store('rule_1', one);
    parts.store('rule_1', other);
    const before = stored();
    expect([parts.store('rule_1', one), stored()]).toEqual([first, before]);
  });

  test('shares nothing with that of another owner', () => {
    const { parts, stored } = database();
    const text = textOf(numbers(1000));
    const one = parts.store('rule_1', text);
    const size = stored();
    const other = parts.store('rule_2', text);
    expect(stored()).toBeGreaterThanOrEqual(2 * size);
    parts.drop([one], []);
    expect(stored()).toBeLessThan(1.1 * size);
    expect(parts.read(other)).toBe(text);
  });

  test('that is dropped leaves what others of its owner share', () => {
    const { parts, stored } = database();
    const [text, longer] = [textOf(numbers(1000)), textOf(numbers(1001))];
    const one = parts.store('rule_1', text);
    const other = parts.store('rule_1', longer);
    parts.drop([one], [other]);
    expect(parts.read(other)).toBe(longer);
    parts.drop([other], ['{"short":true}']);
    expect(stored()).toBe(0);
  });

  test('of which a part is missing is an error, and never another text', () => {
    const { db, parts } = database();
    const stored = parts.store('rule_1', textOf(numbers(1000)));
    db.connection.exec('DELETE FROM rule_parts WHERE id = 3');
    expect(() => parts.read(stored)).toThrow('Part 3 of a stored text is missing.');
    expect(() => parts.read('@x')).toThrow('neither a text nor a reference');
  });
});

test('a text is cut where it says so itself, into pieces of some thousand characters that make it again', () => {
  const text = textOf(numbers(5000));
  const pieces = cutText(text);
  expect(pieces.join('')).toBe(text);
  expect(Math.min(...pieces.slice(0, -1).map(({ length }) => length))).toBeGreaterThanOrEqual(256);
  expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThanOrEqual(8193);
  expect(text.length / pieces.length).toBeGreaterThan(500);
  expect(text.length / pieces.length).toBeLessThan(3000);
  // Where it never says so, at the most; and never between the two halves of a character.
  for (const monotone of ['x'.repeat(100_000), `x${'😀'.repeat(50_000)}`]) {
    const cut = cutText(monotone);
    expect([cut.join(''), cut.every((piece) => piece.isWellFormed())]).toEqual([monotone, true]);
    expect(Math.max(...cut.map(({ length }) => length))).toBeLessThanOrEqual(8193);
  }
});

test('texts that are made of others are stored by reference where one of those is long', () => {
  const { parts } = database();
  const long = textOf(numbers(1000));
  const stored = parts.store('rule_1', long);
  expect(joinStored(['{"a":', '{"b":1}', '}'])).toBe('{"a":{"b":1}}');
  const joined = joinStored(['{"a":', stored, ',"c":', '{"d":1}', '}']);
  expect(joined.length).toBeLessThan(60);
  expect(readJoined(parts, joined)).toBe(`{"a":${long},"c":{"d":1}}`);
});

test('a data document whose parts were altered is not passed off as the one that a decision saw', async () => {
  const { store, tenant } = await storeWithTenant();
  const stored = await store.write((db) =>
    prepareTextParts(db, 'compiled_parts').store('key_1', textOf(numbers(1000))),
  );
  const decision = newDecision({ dataDigest: 'd', dataText: joinStored(['{"subjects":{"key_1":', stored, '}}']) });
  const call = newCall(tenant);
  await store.openCall(call, decision, costing());
  const id = decisionIdOf(call);
  await expect(store.read((db) => getDataDocument(db, tenant.organizationId, id))).rejects.toThrow(
    `The data document of ${id} is not what was stored.`,
  );
});

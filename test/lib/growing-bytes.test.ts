import { expect, it } from 'vitest';
import { GrowingBytes } from '../../src/lib/json.ts';

it('holds what was appended, in its order', () => {
  const bytes = new GrowingBytes();
  for (const piece of ['a', '', 'bc', 'x'.repeat(1000), 'd']) bytes.append(Buffer.from(piece));

  expect([bytes.length, bytes.take().toString()]).toEqual([1004, `abc${'x'.repeat(1000)}d`]);
});

it('takes no more than twice what it holds, in pieces of a byte too', () => {
  const bytes = new GrowingBytes();
  const piece = Buffer.from('x');
  for (let i = 0; i < 100_000; i += 1) bytes.append(piece);

  expect(bytes.capacity).toBeLessThanOrEqual(200_000);
});

it('takes exactly what comes in one piece', () => {
  const bytes = new GrowingBytes();
  bytes.append(Buffer.alloc(5000));

  expect(bytes.capacity).toBe(5000);
});

it('begins again after it was taken, and leaves what was taken alone', () => {
  const bytes = new GrowingBytes();
  bytes.append(Buffer.from('first'));
  const first = bytes.take();
  bytes.append(Buffer.from('other'));

  expect([first.toString(), bytes.take().toString(), bytes.length, bytes.capacity]).toEqual(['first', 'other', 0, 0]);
});

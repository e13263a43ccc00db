import { describe, expect, it } from 'vitest';
import { GrowingBytes } from '../../src/domain/growing-bytes.ts';

const KEPT = 64 * 1024;

describe('bytes that come in pieces', () => {
  it('are what came, in order, and gone once they are taken', () => {
    const bytes = new GrowingBytes();
    for (const piece of ['a', '', 'bc', 'def']) bytes.append(Buffer.from(piece));

    expect([bytes.length, String(bytes.take()), bytes.length, bytes.capacity]).toEqual([6, 'abcdef', 0, 0]);
    bytes.append(Buffer.from('g'));
    expect(String(bytes.take())).toBe('g');
  });

  it('take at most twice their length, however small the pieces are', () => {
    const bytes = new GrowingBytes();
    for (let count = 0; count < 100_000; count += 1) bytes.append(Buffer.from('x'));

    expect(bytes.length).toBe(100_000);
    expect(bytes.capacity).toBeLessThanOrEqual(200_000);
  });

  it('never write into a piece that was given', () => {
    const whole = Buffer.from('abcdef');
    const bytes = new GrowingBytes();
    bytes.append(whole.subarray(0, 3));
    bytes.append(Buffer.from('XYZ'));

    expect([String(bytes.take()), String(whole)]).toEqual(['abcXYZ', 'abcdef']);
  });

  it('above 64 KiB have memory that nobody else has', () => {
    const piece = Buffer.alloc(KEPT + 1, 'x');
    const bytes = new GrowingBytes();
    bytes.append(piece);

    expect(bytes.take().buffer).not.toBe(piece.buffer);
  });
});

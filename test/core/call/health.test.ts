// Which targets rest (src/core/README.md, "order").
import { beforeEach, describe, expect, it } from 'vitest';
import { Health, type Target } from '../../../src/core/reach.ts';
import { TEXT_ONLY } from '../../../src/domain/model.ts';
import { ManualClock } from '../../../src/domain/time.ts';
import { openAiAdapter } from '../../../src/providers/openai/openai.ts';

const target = (providerId: string, providerKeyId?: string, origin = `https://${providerId}.example`): Target => ({
  mapping: {
    id: `${providerId}/m`,
    providerId,
    modelId: 'm',
    externalId: 'm',
    custom: false,
    names: [],
    providerNames: [],
    prices: {},
    freeFlag: false,
    ...TEXT_ONLY,
  },
  provider: {
    id: providerId,
    wire: 'openai',
    adapter: openAiAdapter,
    base: { origin, path: '' },
    addresses: 'trusted',
    namedFields: new Set(),
  },
  credential: providerKeyId === undefined ? { source: 'service' } : { source: 'byok', providerKeyId },
});

const [a, b] = [target('a'), target('b')];
let clock: ManualClock;
let health: Health;

beforeEach(() => {
  clock = new ManualClock('2026-11-21T12:00:00Z');
  health = new Health(clock);
});

const order = (...targets: Target[]): string[] => health.ordered(targets).map(({ provider }) => provider.id);

/** One attempt and its end. Returns whether it was a probe. */
function attempt(of: Target, outcome: 'succeeded' | 'failed' | undefined): boolean {
  const isProbe = health.begun(of);
  health.ended(of, isProbe, outcome);
  return isProbe;
}

const failThrice = (of: Target): void => {
  for (let i = 0; i < 3; i++) attempt(of, 'failed');
};

describe('a target', () => {
  it('keeps its place after two failures, and rests behind the others after the third', () => {
    attempt(a, 'failed');
    attempt(a, 'failed');
    expect(order(a, b)).toEqual(['a', 'b']);
    attempt(a, 'failed');
    expect(order(a, b)).toEqual(['b', 'a']);
  });

  it('starts counting again after a success', () => {
    attempt(a, 'failed');
    attempt(a, 'failed');
    attempt(a, 'succeeded');
    attempt(a, 'failed');
    attempt(a, 'failed');
    expect(order(a, b)).toEqual(['a', 'b']);
  });

  it('is not blamed for a caller who leaves or who asks for what cannot be done', () => {
    for (let i = 0; i < 5; i++) attempt(a, undefined);
    expect(order(a, b)).toEqual(['a', 'b']);
  });

  it('has its place again after 30 seconds', () => {
    failThrice(a);
    clock.advance(29_999);
    expect(order(a, b)).toEqual(['b', 'a']);
    clock.advance(1);
    expect(order(a, b)).toEqual(['a', 'b']);
  });

  it('that says how long it wants to rest does so from the first failure on, to the millisecond', () => {
    health.ended(a, health.begun(a), 'failed', 7000);
    clock.advance(6999);
    expect([order(a, b), health.begun(a)]).toEqual([['b', 'a'], false]);
    clock.advance(1);
    expect([order(a, b), health.begun(a)]).toEqual([['a', 'b'], true]);
  });

  it('that said how long rests no less for a later failure that says nothing', () => {
    health.ended(a, health.begun(a), 'failed', 60_000);
    attempt(a, 'failed');
    clock.advance(59_999);
    expect(order(a, b)).toEqual(['b', 'a']);
  });

  it('that succeeds is no longer held to what it said before', () => {
    health.ended(a, health.begun(a), 'failed', 60_000);
    attempt(a, 'succeeded');
    expect(order(a, b)).toEqual(['a', 'b']);
    failThrice(a);
    clock.advance(30_000);
    expect(order(a, b)).toEqual(['a', 'b']);
  });

  it('that says another time rests as it said last', () => {
    health.ended(a, health.begun(a), 'failed', 60_000);
    health.ended(a, health.begun(a), 'failed', 1000);
    clock.advance(1000);
    expect(order(a, b)).toEqual(['a', 'b']);
  });

  it('that has rested is tried by one call; the others go on avoiding it', () => {
    failThrice(a);
    clock.advance(30_000);
    const isProbe = health.begun(a);
    expect([isProbe, order(a, b), health.begun(a)]).toEqual([true, ['b', 'a'], false]);
    health.ended(a, true, 'succeeded');
    expect([order(a, b), health.begun(a)]).toEqual([['a', 'b'], false]);
  });

  it('that fails its probe rests again', () => {
    failThrice(a);
    clock.advance(30_000);
    expect(attempt(a, 'failed')).toBe(true);
    expect(order(a, b)).toEqual(['b', 'a']);
    clock.advance(30_000);
    expect(order(a, b)).toEqual(['a', 'b']);
  });

  it('whose prober leaves is probed by the next call', () => {
    failThrice(a);
    clock.advance(30_000);
    attempt(a, undefined);
    expect([order(a, b), health.begun(a)]).toEqual([['a', 'b'], true]);
  });

  it('with another credential, or at another address, is another one', () => {
    failThrice(target('a', 'pkey_1'));
    failThrice(target('a', undefined, 'https://other.example'));
    expect(order(target('a', 'pkey_2'), a, b, target('a', 'pkey_1'))).toEqual(['a', 'a', 'b', 'a']);
    expect(order(target('a', 'pkey_1'), b)).toEqual(['b', 'a']);
  });
});

it('those that rest stay in their order', () => {
  failThrice(a);
  failThrice(b);
  expect(order(a, target('c'), b, target('d'))).toEqual(['c', 'd', 'a', 'b']);
});

import { beforeEach, describe, expect, test } from 'vitest';
import { readBundle } from '../../src/policy/bundle.ts';
import { PolicyInstance } from '../../src/policy/engine.ts';
import { CALL, DENIED, dataOfKey, denyModels, SWIFT } from './policy-call.ts';

const module = new WebAssembly.Module(readBundle().wasm);
const DECISION = 'gateway/authz/decision';
const denying = dataOfKey(denyModels('swift-1')).text;
const open = dataOfKey().text;
const PERMITTED = { permitted: ['acme/swift-1'], violations: [] };

const text = JSON.stringify(CALL);
const slow = JSON.stringify({ ...CALL, candidates: [{ ...SWIFT, names: ['slow-1'] }] });

let instance: PolicyInstance;

beforeEach(() => {
  instance = new PolicyInstance(module, 5);
  instance.load(denying);
});

describe('an answer', () => {
  test('is the same object when question and result are those of the last time', () => {
    const answer = instance.evaluate(DECISION, text);
    expect(answer.result).toEqual(DENIED);
    expect(instance.evaluate(DECISION, `${text} `.trim())).toBe(answer);
  });

  test.each<[string, () => unknown]>([
    ['another input', () => instance.evaluate(DECISION, slow)],
    ['another entrypoint', () => instance.evaluate('gateway/authz/permitted', text)],
    ['data loaded again', () => instance.load(denying)],
  ])('is another one after %s', (_, happens) => {
    const answer = instance.evaluate(DECISION, text);
    happens();
    const again = instance.evaluate(DECISION, text);
    expect(again).toEqual(answer);
    expect(again).not.toBe(answer);
  });

  test('is not that of the input, the entrypoint or the data before', () => {
    expect(instance.evaluate(DECISION, text).result).toEqual(DENIED);
    expect(instance.evaluate(DECISION, slow).result).toEqual(PERMITTED);
    expect(instance.evaluate('gateway/authz/permitted', slow).result).toEqual(['acme/swift-1']);
    expect(instance.evaluate('gateway/authz/permitted', text).result).toEqual([]);
    instance.load(open);
    expect(instance.evaluate(DECISION, text).result).toEqual(PERMITTED);
  });
});

test('memory does not grow with the number of evaluations, of inputs and of documents', () => {
  const round = (): void => {
    for (const each of [text, text, slow, text]) instance.evaluate(DECISION, each);
    instance.load(open);
    instance.evaluate(DECISION, text);
    instance.load(denying);
  };
  round();
  const before = instance.pages;
  for (let count = 0; count < 2_000; count++) round();
  expect(instance.pages).toBe(before);
});

test('memory that grows while a document is written holds it', () => {
  const large = dataOfKey(denyModels('swift-1', ...Array.from({ length: 20_000 }, (_, index) => `model-${index}`)));
  instance.load(large.text);
  expect(instance.pages).toBeGreaterThan(5);
  expect(instance.evaluate(DECISION, text).result).toEqual(DENIED);
});

test('an entrypoint that the policy lacks is refused', () => {
  expect(() => instance.evaluate('toString', text)).toThrow(TypeError);
});

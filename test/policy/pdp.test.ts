import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { PolicyRule } from '../../src/domain/iam-rule.ts';
import type { PolicyInput } from '../../src/generated/types.ts';
import { bundleDigest, readBundle } from '../../src/policy/bundle.ts';
import { compileSubjectRules, dataDocument, PolicyFailure } from '../../src/policy/data-document.ts';
import { createPdp } from '../../src/policy/pdp.ts';
import { CALL, dataOfKey, denyModels, modelRule, pricingRule, SWIFT } from './policy-call.ts';

const pdp = createPdp();
const open = dataOfKey();

describe('a decision', () => {
  test('has every list sorted, the same whatever the order of the candidates', () => {
    const candidates = Array.from({ length: 40 }, (_, index) => ({
      ...SWIFT,
      id: `acme/${index}`,
      names: [`m${index}`],
    }));
    const report: PolicyRule = { ...modelRule('rule_2', 'deny', 'm9'), mode: 'report' };
    const data = dataOfKey(denyModels('m1', 'm2*', 'm3*'), report);
    const decision = pdp.decide({ ...CALL, candidates }, data);
    expect(decision.permitted).toEqual(decision.permitted.toSorted());
    expect(decision.violations.map(({ candidate }) => candidate)).toEqual(
      decision.violations.map(({ candidate }) => candidate).toSorted(),
    );
    expect(decision.shadow).toEqual({
      permitted: decision.permitted.filter((id) => id !== 'acme/9'),
      would_deny: ['rule_2'],
      would_allow: [],
    });
    expect(pdp.decide({ ...CALL, candidates: candidates.toReversed() }, data)).toEqual(decision);
  });

  test('that is made again is the same object, which nobody can change', () => {
    const decision = pdp.decide(CALL, dataOfKey(denyModels('swift-1')));
    expect(pdp.decide(structuredClone(CALL), dataOfKey(denyModels('swift-1')))).toBe(decision);
    expect(() => decision.permitted.push('acme/swift-1')).toThrow(TypeError);
    expect(() => decision.violations.pop()).toThrow(TypeError);
    expect(() => Object.assign(Object(decision.violations[0]), { effect: 'allow' })).toThrow(TypeError);
    const permitted = pdp.permitted(CALL, open);
    expect(pdp.permitted(CALL, open)).toBe(permitted);
    expect(Object.isFrozen(permitted)).toBe(true);
  });

  test('carries the digest of the bundle that made it', () => {
    expect(pdp.bundleDigest).toBe(readBundle().digest);
    expect(pdp.bundleDigest).toMatch(/^[0-9a-f]{64}$/);
  });
});

describe('what cannot be judged is a failure, never a pass', () => {
  test.each<[string, object]>([
    ['an unknown action', { action: 'embed' }],
    ['no action', { action: undefined }],
    ['an address that is neither text nor null', { client_ip: 7 }],
    ['no address', { client_ip: undefined }],
    ['no subjects', { subjects: [] }],
    ['a subject that the data document lacks', { subjects: [...CALL.subjects, { scope: 'member', id: 'mem_9' }] }],
    ['no candidates', { candidates: [] }],
    ['a candidate twice', { candidates: [SWIFT, SWIFT] }],
    ['a candidate without names', { candidates: [{ ...SWIFT, names: [] }] }],
    ['a candidate without provider names', { candidates: [{ ...SWIFT, provider_names: undefined }] }],
    ['a candidate without pricing type', { candidates: [{ ...SWIFT, free: undefined }] }],
    ['a candidate without id', { candidates: [{ ...SWIFT, id: undefined }] }],
  ])('%s', (_, change) => {
    const input: PolicyInput = { ...CALL, ...change };
    expect(() => pdp.decide(input, open)).toThrow(PolicyFailure);
    expect(() => pdp.permitted(input, open)).toThrow(PolicyFailure);
  });

  test.each([
    ['no subjects', '{}'],
    ['another shape', '{"subjects":[]}'],
    ['a subject without an enforced rule set', '{"subjects":{"key_1":{}}}'],
    ['no JSON', '{"subjects":'],
  ])('a data document with %s', (_, text) => {
    expect(() => pdp.decide(CALL, { text, digest: text })).toThrow(PolicyFailure);
    expect(() => pdp.permitted(CALL, { text, digest: text })).toThrow(PolicyFailure);
  });

  test('a price that is no number trips every deny maximum', () => {
    const cap = pricingRule('rule_1', 'deny', { maxInputPrice: '9' });
    const input = { ...CALL, candidates: [{ ...SWIFT, input_price: Number.NaN }] };
    expect(pdp.permitted(input, dataOfKey(cap))).toEqual([]);
  });

  test('a policy or data that the digest does not name', () => {
    const bundle = readBundle();
    const wasm = Buffer.concat([bundle.wasm, Buffer.from([0, 1, 0])]);
    for (const other of [
      { ...bundle, wasm },
      { ...bundle, data: '{"custom_data":1}' },
    ]) {
      expect(() => createPdp(other)).toThrow(new PolicyFailure('The policy is not the one that its digest names.'));
    }
  });

  test('a policy that permits what is no candidate', () => {
    const fixture = new URL('../fixtures/policy/permit-all.wasm.gz', import.meta.url);
    const wasm = gunzipSync(readFileSync(fixture));
    const permitAll = createPdp({ wasm, digest: bundleDigest({ wasm }) });
    const twice = {
      ...CALL,
      candidates: [SWIFT, { ...SWIFT, toJSON: () => ({ ...SWIFT, id: 'other' }), id: 'acme/2' }],
    };
    expect(permitAll.permitted(CALL, open)).toEqual(['acme/swift-1']);
    expect(() => permitAll.permitted(twice, open)).toThrow(PolicyFailure);
    expect(() => permitAll.decide(twice, open)).toThrow(PolicyFailure);
  });
});

test('a subject with no rules, among others, changes nothing', () => {
  const input: PolicyInput = { ...CALL, subjects: [{ scope: 'member', id: 'mem_1' }, ...CALL.subjects] };
  const rules = compileSubjectRules([denyModels('swift-1')]);
  const data = dataDocument([
    { id: 'mem_1', rules: compileSubjectRules([]) },
    { id: 'key_1', rules },
  ]);
  expect(pdp.decide(input, data)).toEqual(pdp.decide(CALL, dataDocument([{ id: 'key_1', rules }])));
});

import { hash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PolicyRule } from '../../src/domain/iam-rule.ts';
import { validator } from '../../src/lib/schemas.ts';
import { compileSubjectRules, dataDocument, PolicyFailure } from '../../src/policy/data-document.ts';
import { createPdp } from '../../src/policy/pdp.ts';
import { subjects } from './arbitraries.ts';
import { CALL, dataOfKey, denyModels, ipRule, modelRule, pricingRule, providerRule } from './policy-call.ts';
import { propertyRuns } from './property-runs.ts';

const validatePolicyData = validator('PolicyData');

describe('the rules of a subject', () => {
  test('without rules are an empty rule set, which is not the same as none', () => {
    expect(compileSubjectRules([])).toBe('{"enforce":{}}');
  });

  test('are looked up by entry, prefixes apart, every list sorted and without repeats', () => {
    const rules: PolicyRule[] = [
      modelRule('rule_2', 'allow', 'b', 'a', 'b', 'gpt-*', '*'),
      modelRule('rule_1', 'allow', 'b', 'gpt-*'),
      providerRule('rule_3', 'deny', 'custom:acme', 'custom'),
    ];
    expect(JSON.parse(compileSubjectRules(rules))).toEqual({
      enforce: {
        allow_models: {
          rules: ['rule_1', 'rule_2'],
          exact: { a: ['rule_2'], b: ['rule_1', 'rule_2'] },
          prefixes: {
            '*': { prefix: '', rules: ['rule_2'] },
            'gpt-*': { prefix: 'gpt-', rules: ['rule_1', 'rule_2'] },
          },
        },
        deny_providers: { rules: ['rule_3'], exact: { custom: ['rule_3'], 'custom:acme': ['rule_3'] } },
      },
    });
  });

  test('hold caps as integer pico-dollars per token and ranges in canonical form', () => {
    const rules: PolicyRule[] = [
      pricingRule('rule_1', 'deny', { pricingType: 'paid', maxInputPrice: '0.15', maxOutputPrice: '9000000' }),
      ipRule('rule_2', 'allow', '10.1.2.3/8', '::ffff:10.0.0.1/104', '2001:DB8::1/32'),
    ];
    expect(JSON.parse(compileSubjectRules(rules))).toEqual({
      enforce: {
        deny_pricing: {
          rules: ['rule_1'],
          conditions: {
            rule_1: { pricing_type: 'paid', max_input_price: 150_000, max_output_price: 9_000_000_000_000 },
          },
        },
        allow_ip_cidrs: { rules: ['rule_2'], ranges: { '10.0.0.0/8': ['rule_2'], '2001:db8::/32': ['rule_2'] } },
      },
    });
  });

  test('have a shadow of both modes exactly when some are in mode report', () => {
    const report: PolicyRule = { ...modelRule('rule_2', 'deny', 'b'), mode: 'report' };
    expect(JSON.parse(compileSubjectRules([denyModels('a'), report]))).toEqual({
      enforce: { deny_models: { rules: ['rule_1'], exact: { a: ['rule_1'] }, prefixes: {} } },
      shadow: {
        deny_models: { rules: ['rule_1', 'rule_2'], exact: { a: ['rule_1'], b: ['rule_2'] }, prefixes: {} },
      },
      report_rules: { rule_2: true },
    });
  });

  test('named like parts of a prototype survive, and deny', () => {
    const names = ['__proto__', 'constructor', 'toString'];
    const data = dataOfKey(denyModels(...names));
    for (const name of names) {
      const candidate = { id: `acme/${name}`, names: [name], provider_names: ['acme'], free: false };
      expect(createPdp().permitted({ ...CALL, candidates: [candidate] }, data)).toEqual([]);
    }
  });

  test('are the same text in whatever order the rules come, and always a valid document', () => {
    fc.assert(
      fc.property(subjects, fc.infiniteStream(fc.nat()), (owners, random) => {
        for (const { id, rules } of owners) {
          const text = compileSubjectRules(rules);
          const shuffled = rules.map((item) => ({ item, key: random.next().value })).sort((a, b) => a.key - b.key);
          expect(compileSubjectRules(shuffled.map(({ item }) => item))).toBe(text);
          expect(validatePolicyData(JSON.parse(dataDocument([{ id, rules: text }]).text))).toBe(true);
        }
      }),
      propertyRuns(200),
    );
  });

  test.each<[string, unknown[]]>([
    ['an empty list', [{ ...denyModels() }]],
    ['an entry outside of the alphabet', [denyModels('a b')]],
    ['a lone surrogate', [denyModels('\ud800')]],
    ['an empty entry', [denyModels('')]],
    ['a star in the middle', [denyModels('a*b')]],
    ['an entry that is too long', [denyModels('a'.repeat(513))]],
    ['a provider with a star', [{ ...denyModels(), ruleType: 'deny_providers', ruleValue: { providers: ['a*'] } }]],
    ['a bare address', [{ ...denyModels(), ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['10.0.0.1'] } }]],
    ['no pricing condition', [{ ...denyModels(), ruleType: 'deny_pricing', ruleValue: {} }]],
    ['an unknown pricing field', [{ ...denyModels(), ruleType: 'deny_pricing', ruleValue: { maxPrice: '1' } }]],
    ['an unknown pricing type', [{ ...denyModels(), ruleType: 'deny_pricing', ruleValue: { pricingType: 'no' } }]],
    ['a malformed cap', [{ ...denyModels(), ruleType: 'deny_pricing', ruleValue: { maxInputPrice: '1e3' } }]],
    [
      'a cap with seven places',
      [{ ...denyModels(), ruleType: 'deny_pricing', ruleValue: { maxInputPrice: '0.0000001' } }],
    ],
    ['an unknown type', [{ ...denyModels('a'), ruleType: 'deny_regions' }]],
    ['a type of a prototype', [{ ...denyModels('a'), ruleType: 'toString' }]],
    ['the value of another type', [{ ...denyModels('a'), ruleType: 'deny_providers' }]],
    ['an unknown mode', [{ ...denyModels('a'), mode: 'off' }]],
    ['one id twice', [denyModels('a'), denyModels('b')]],
    ['an empty id', [{ ...denyModels('a'), id: '' }]],
  ])('with %s cannot be compiled', (_, rules) => {
    expect(() => compileSubjectRules(asRules(rules))).toThrow(PolicyFailure);
  });
});

describe('a data document', () => {
  test('joins the compiled rules of its subjects, sorted by id, with the digest of its text', () => {
    const document = dataDocument([
      { id: 'mem_1', rules: '{"enforce":{}}' },
      { id: '__proto__', rules: '{"enforce":{}}' },
    ]);
    const text = '{"subjects":{"__proto__":{"enforce":{}},"mem_1":{"enforce":{}}}}';
    expect(document).toEqual({ text, digest: hash('sha256', text) });
  });

  test('refuses a subject that comes twice', () => {
    const subject = { id: 'key_1', rules: '{"enforce":{}}' };
    expect(() => dataDocument([subject, subject])).toThrow(PolicyFailure);
  });
});

/** Rules as a damaged database would give them: the types do not hold. */
function asRules(rules: unknown[]): PolicyRule[] {
  const parsed: PolicyRule[] = JSON.parse(JSON.stringify(rules));
  return parsed;
}

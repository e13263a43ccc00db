import { describe, expect, it } from 'vitest';
import { kindOf, RULE_TYPES } from '../../src/domain/iam-rule.ts';
import { validator } from '../../src/lib/schemas.ts';
import { CASES } from '../../src/policy/self-test.ts';
import { faultOf } from './faults.ts';

const validateIamRule = validator('IamRule');
const validateIpCidrsValue = validator('IpCidrsValue');
const validateModelsValue = validator('ModelsValue');
const validatePricingValue = validator('PricingValue');
const validateProvidersValue = validator('ProvidersValue');
const validateRuleAnswer = validator('RuleAnswer');
const validateRuleCreate = validator('RuleCreate');
const validateRuleList = validator('RuleList');
const validateRulePatch = validator('RulePatch');

const VALUES = {
  models: { models: ['openai/gpt-x', 'claude-*', '*'] },
  providers: { providers: ['openai', 'custom', 'custom:acme'] },
  pricing: { pricingType: 'free', maxInputPrice: '2.5', maxOutputPrice: 10 },
  ip_cidrs: { ipCidrs: ['10.0.0.0/8', '2001:db8::/32'] },
};
const OF_TYPES = RULE_TYPES.map((type) => ({ type, value: CASES[type][0][1].ruleValue }));

const record = {
  id: 'rule_1',
  createdAt: '2026-01-01T00:00:00.000Z',
  updatedAt: '2026-01-01T00:00:00.000Z',
  ruleType: 'allow_models',
  ruleValue: VALUES.models,
  status: 'active',
  mode: 'enforce',
  description: null,
  apiKeyId: 'key_1',
  memberId: null,
  organizationId: null,
};

describe('the body that makes a rule', () => {
  it.each(OF_TYPES)('of type $type takes the value of its kind and no other', ({ type, value }) => {
    expect(faultOf(validateRuleCreate, { ruleType: type, ruleValue: value })).toBe(null);
    for (const other of OF_TYPES) {
      if (kindOf(other.type) === kindOf(type)) continue;
      expect(faultOf(validateRuleCreate, { ruleType: type, ruleValue: other.value })).toMatch(
        /^\/ruleValue (required \w+|additionalProperties)$/,
      );
    }
  });

  it('takes whatever each kind allows', () => {
    for (const [kind, value] of Object.entries(VALUES)) {
      expect(faultOf(validateRuleCreate, { ruleType: `deny_${kind}`, ruleValue: value })).toBe(null);
    }
  });

  it('may say status, mode and description', () => {
    const body = {
      ruleType: 'deny_models',
      ruleValue: VALUES.models,
      status: 'inactive',
      mode: 'report',
      description: 'x',
    };
    expect(faultOf(validateRuleCreate, body)).toBe(null);
  });

  it.each<[string, unknown, string]>([
    ['without type', { ruleValue: VALUES.models }, ' required ruleType'],
    ['without value', { ruleType: 'allow_models' }, ' required ruleValue'],
    ['with an unknown type', { ruleType: 'allow_regions', ruleValue: VALUES.models }, '/ruleType enum'],
    ['with a value that is a list', { ruleType: 'allow_models', ruleValue: ['a'] }, '/ruleValue type'],
    [
      'with an entry that is wrong',
      { ruleType: 'allow_models', ruleValue: { models: ['a', 'b c'] } },
      '/ruleValue/models/1 pattern',
    ],
    ['with an unknown field', { ruleType: 'allow_models', ruleValue: VALUES.models, id: 'x' }, ' additionalProperties'],
    [
      'with a description that is too long',
      { ruleType: 'allow_models', ruleValue: VALUES.models, description: 'x'.repeat(257) },
      '/description maxLength',
    ],
    ['with an unknown mode', { ruleType: 'allow_models', ruleValue: VALUES.models, mode: 'off' }, '/mode enum'],
  ])('is refused %s', (_, value, expected) => {
    expect(faultOf(validateRuleCreate, value)).toBe(expected);
  });
});

describe('the body that changes a rule', () => {
  it('may change any one field', () => {
    expect(faultOf(validateRulePatch, { status: 'inactive' })).toBe(null);
    expect(faultOf(validateRulePatch, { ruleValue: VALUES.ip_cidrs })).toBe(null);
    expect(faultOf(validateRulePatch, { description: null })).toBe(null);
  });

  it('is refused when it is empty or knows more', () => {
    expect(faultOf(validateRulePatch, {})).toBe(' minProperties');
    expect(faultOf(validateRulePatch, { apiKeyId: 'key_2' })).toBe(' additionalProperties');
  });
});

describe('the value of a rule', () => {
  it.each<[string, unknown, string]>([
    ['no model', { models: [] }, '/models minItems'],
    ['more than 1,000 models', { models: Array.from({ length: 1001 }, (_, i) => `m${i}`) }, '/models maxItems'],
    ['a star inside a name', { models: ['openai/*-x'] }, '/models/0 pattern'],
    ['a name of 513 characters', { models: ['x'.repeat(513)] }, '/models/0 pattern'],
    ['a prefix of 513 characters', { models: [`${'x'.repeat(512)}*`] }, '/models/0 pattern'],
    ['a model that is no text', { models: [1] }, '/models/0 type'],
  ])('names models, never %s', (_, value, expected) => {
    expect(faultOf(validateModelsValue, value)).toBe(expected);
  });

  it.each<[string, unknown, string]>([
    ['no provider', { providers: [] }, '/providers minItems'],
    ['a star', { providers: ['open*'] }, '/providers/0 pattern'],
    ['a blank', { providers: ['open ai'] }, '/providers/0 pattern'],
  ])('names providers, never %s', (_, value, expected) => {
    expect(faultOf(validateProvidersValue, value)).toBe(expected);
  });

  it.each<[string, unknown, string]>([
    ['nothing', {}, ' minProperties'],
    ['an unknown type', { pricingType: 'cheap' }, '/pricingType enum'],
    ['no maximum', { maxInputPrice: null }, '/maxInputPrice type'],
    ['an unknown field', { maxPrice: '1' }, ' additionalProperties'],
  ])('bounds prices, never by %s', (_, value, expected) => {
    expect(faultOf(validatePricingValue, value)).toBe(expected);
  });

  it.each<[string, unknown, string]>([
    ['no range', { ipCidrs: [] }, '/ipCidrs minItems'],
    ['more than 200 ranges', { ipCidrs: Array.from({ length: 201 }, (_, i) => `10.0.${i}.0/24`) }, '/ipCidrs maxItems'],
    ['an empty range', { ipCidrs: [''] }, '/ipCidrs/0 minLength'],
    ['a range longer than any', { ipCidrs: ['1'.repeat(65)] }, '/ipCidrs/0 maxLength'],
  ])('names ranges, never %s', (_, value, expected) => {
    expect(faultOf(validateIpCidrsValue, value)).toBe(expected);
  });
});

describe('answers about rules', () => {
  it('carry the rule and warnings', () => {
    expect(faultOf(validateIamRule, record)).toBe(null);
    expect(faultOf(validateRuleAnswer, { rule: record, warnings: ['`x` is no model of the catalogue.'] })).toBe(null);
    expect(faultOf(validateRuleAnswer, { rule: record })).toBe(' required warnings');
    expect(faultOf(validateRuleList, { rules: [record], nextCursor: 'abc' })).toBe(null);
  });

  it('carry a whole rule', () => {
    expect(faultOf(validateRuleAnswer, { rule: { ...record, status: undefined }, warnings: [] })).toBe(
      '/rule required status',
    );
  });
});

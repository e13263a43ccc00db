import { describe, expect, it } from 'vitest';
import type { PolicyCandidate } from '../../src/generated/types.ts';
import { validator } from '../../src/lib/schemas.ts';
import { type OracleRequest, type OracleRule, oracleDecision, picoPerToken, type RuleContent } from './oracle.ts';

const validatePolicyDecision = validator('PolicyDecision');

const PAID: PolicyCandidate = {
  id: 'openai/gpt-5',
  names: ['gpt-5', 'gpt-5-latest', 'openai/gpt-5', 'openai/gpt-5-latest'],
  provider_names: ['openai'],
  free: false,
  input_price: 1_250_000,
  output_price: 10_000_000,
};
const FREE: PolicyCandidate = {
  id: 'groq/llama-3',
  names: ['llama-3', 'groq/llama-3'],
  provider_names: ['groq'],
  free: true,
};
const OWN: PolicyCandidate = {
  id: 'acme/llama-3',
  names: ['acme/llama-3'],
  provider_names: ['custom', 'custom:acme'],
  free: false,
  input_price: 0,
};

let nextId = 0;
const rule = (content: RuleContent, mode: OracleRule['mode'] = 'enforce'): OracleRule => {
  nextId += 1;
  return { ...content, mode, id: `rule_${nextId}` };
};

function request(rules: OracleRule[], rest: Partial<OracleRequest> = {}): OracleRequest {
  return {
    action: 'chat',
    clientIp: '192.0.2.7',
    subjects: [{ scope: 'key', id: 'key_1', rules }],
    candidates: [PAID, FREE, OWN],
    ...rest,
  };
}

const permittedBy = (...contents: RuleContent[]) =>
  oracleDecision(request(contents.map((content) => rule(content)))).permitted;
const allowModels = (...models: string[]): RuleContent => ({ ruleType: 'allow_models', ruleValue: { models } });
const denyModels = (...models: string[]): RuleContent => ({ ruleType: 'deny_models', ruleValue: { models } });
const allowProviders = (...providers: string[]): RuleContent => ({
  ruleType: 'allow_providers',
  ruleValue: { providers },
});
const denyProviders = (...providers: string[]): RuleContent => ({
  ruleType: 'deny_providers',
  ruleValue: { providers },
});
const allowIps = (...ipCidrs: string[]): RuleContent => ({ ruleType: 'allow_ip_cidrs', ruleValue: { ipCidrs } });
const denyIps = (...ipCidrs: string[]): RuleContent => ({ ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs } });

const ALL = ['acme/llama-3', 'groq/llama-3', 'openai/gpt-5'];

describe('models', () => {
  it.each([
    ['the canonical id', 'gpt-5', ['openai/gpt-5']],
    ['an alias', 'gpt-5-latest', ['openai/gpt-5']],
    ['the provider before an alias', 'openai/gpt-5-latest', ['openai/gpt-5']],
    ['a custom model by <custom>/<model>', 'acme/llama-3', ['acme/llama-3']],
    ['not a custom model by its bare id', 'llama-3', ['groq/llama-3']],
    ['nothing by another case', 'GPT-5', []],
    ['a prefix of names', 'groq/*', ['groq/llama-3']],
    ['a prefix of any of the names', 'l*', ['groq/llama-3']],
    ['everything by * alone', '*', ALL],
  ])('an entry means %s', (_, entry, expected) => {
    expect(permittedBy(allowModels(entry))).toEqual(expected);
    expect(permittedBy(denyModels(entry))).toEqual(ALL.filter((id) => !expected.includes(id)));
  });
});

describe('providers', () => {
  it.each([
    ['a provider id', 'groq', ['groq/llama-3']],
    ['any custom provider', 'custom', ['acme/llama-3']],
    ['that custom provider', 'custom:acme', ['acme/llama-3']],
    ['nothing by the bare name of a custom provider', 'acme', []],
    ['nothing that only inherits from a prototype', 'constructor', []],
  ])('an entry means %s', (_, entry, expected) => {
    expect(permittedBy(allowProviders(entry))).toEqual(expected);
    expect(permittedBy(denyProviders(entry))).toEqual(ALL.filter((id) => !expected.includes(id)));
  });
});

describe('pricing', () => {
  it.each([
    ['the type free', { pricingType: 'free' }, ['groq/llama-3'], ['acme/llama-3', 'openai/gpt-5']],
    ['the type paid', { pricingType: 'paid' }, ['acme/llama-3', 'openai/gpt-5'], ['groq/llama-3']],
    [
      'a maximum that is met exactly',
      { maxInputPrice: '1.25' },
      ['acme/llama-3', 'openai/gpt-5'],
      ['acme/llama-3', 'openai/gpt-5'],
    ],
    ['a maximum that is exceeded by one', { maxInputPrice: '1.249999' }, ['acme/llama-3'], ['acme/llama-3']],
    ['a maximum and an unknown price', { maxOutputPrice: '9000000' }, ['openai/gpt-5'], ['openai/gpt-5']],
    ['two conditions', { pricingType: 'paid', maxInputPrice: '0' }, ['acme/llama-3'], []],
  ] as const)('%s: allow needs every condition, deny trips on any', (_, ruleValue, allowed, notDenied) => {
    expect(permittedBy({ ruleType: 'allow_pricing', ruleValue })).toEqual(allowed);
    expect(permittedBy({ ruleType: 'deny_pricing', ruleValue })).toEqual(notDenied);
  });

  it('USD per million tokens are a million pico-dollars per token', () => {
    expect(['0', '1', '0.000001', '2.50', '9000000'].map(picoPerToken)).toEqual([
      0n,
      1_000_000n,
      1n,
      2_500_000n,
      9_000_000_000_000n,
    ]);
  });
});

describe('an unknown client address', () => {
  it.each([allowIps('0.0.0.0/0'), denyIps('10.0.0.0/8')])('is denied by any IP rule: $ruleType', (content) => {
    const only = rule(content);
    expect(oracleDecision(request([only], { clientIp: null }))).toEqual({
      permitted: [],
      violations: [
        {
          scope: 'key',
          kind: 'ip_cidrs',
          effect: content.ruleType.split('_')[0],
          ruleIds: [only.id],
          values: ['unknown'],
        },
      ],
    });
  });

  it('passes where no IP rule is in force', () => {
    const rules = [rule(allowModels('*')), rule(denyIps('10.0.0.0/8'), 'report')];
    expect(oracleDecision(request(rules, { clientIp: null })).permitted).toEqual(ALL);
  });
});

describe('inside a scope', () => {
  it('without rules, everything passes', () => {
    expect(oracleDecision(request([]))).toEqual({ permitted: ALL, violations: [] });
  });

  it('rules of the same allow kind are a union, of different kinds a conjunction', () => {
    expect(permittedBy(allowModels('gpt-5'), allowModels('llama-3'))).toEqual(['groq/llama-3', 'openai/gpt-5']);
    expect(permittedBy(allowModels('gpt-5', 'llama-3'), allowProviders('groq', 'custom'))).toEqual(['groq/llama-3']);
  });

  it('a matching deny rejects, whatever the allows say', () => {
    expect(permittedBy(allowModels('*'), denyModels('gpt-*'))).toEqual(['acme/llama-3', 'groq/llama-3']);
  });

  it('an allow kind whose entries match nothing still restricts', () => {
    expect(permittedBy(allowModels('no-such-model'))).toEqual([]);
  });

  it('moderation skips the model and pricing kinds', () => {
    const rules = [
      denyModels('*'),
      { ruleType: 'allow_pricing', ruleValue: { maxInputPrice: '0' } } as const,
      denyProviders('groq'),
    ];
    const { permitted } = oracleDecision(
      request(
        rules.map((content) => rule(content)),
        { action: 'moderation' },
      ),
    );
    expect(permitted).toEqual(['acme/llama-3', 'openai/gpt-5']);
  });
});

describe('violations', () => {
  it('of several scopes and kinds are all there, with their rules and values', () => {
    const [a, b, c, d, e] = [
      rule(denyModels('openai/*', 'gpt-5', 'claude')),
      rule(denyModels('gpt-5')),
      rule(denyModels('claude')),
      rule(allowProviders('groq')),
      rule(allowIps('10.0.0.0/8')),
    ];
    const subjects = [
      { scope: 'organization' as const, id: 'org_1', rules: [a, b, c] },
      { scope: 'member' as const, id: 'mem_1', rules: [d] },
      { scope: 'key' as const, id: 'key_1', rules: [e] },
    ];
    expect(oracleDecision(request([], { subjects, candidates: [PAID] }))).toEqual({
      permitted: [],
      violations: [
        { scope: 'key', kind: 'ip_cidrs', effect: 'allow', ruleIds: [e.id], values: ['192.0.2.7'] },
        {
          scope: 'member',
          kind: 'providers',
          effect: 'allow',
          candidate: PAID.id,
          ruleIds: [d.id],
          values: ['openai'],
        },
        {
          scope: 'organization',
          kind: 'models',
          effect: 'deny',
          candidate: PAID.id,
          ruleIds: [a.id, b.id].sort(),
          values: ['gpt-5', 'openai/*'],
        },
      ],
    });
  });

  it('of pricing say which conditions tripped, or all that was offered', () => {
    const deny = rule({
      ruleType: 'deny_pricing',
      ruleValue: { pricingType: 'free', maxInputPrice: '1', maxOutputPrice: '20' },
    });
    const allow = rule({ ruleType: 'allow_pricing', ruleValue: { pricingType: 'free' } });
    expect(oracleDecision(request([deny, allow], { candidates: [PAID, FREE] })).violations).toEqual([
      {
        scope: 'key',
        kind: 'pricing',
        effect: 'allow',
        candidate: PAID.id,
        ruleIds: [allow.id],
        values: ['inputPrice=1250000', 'outputPrice=10000000', 'pricingType=paid'],
      },
      {
        scope: 'key',
        kind: 'pricing',
        effect: 'deny',
        candidate: FREE.id,
        ruleIds: [deny.id],
        values: ['inputPrice=unknown', 'outputPrice=unknown', 'pricingType=free'],
      },
      {
        scope: 'key',
        kind: 'pricing',
        effect: 'deny',
        candidate: PAID.id,
        ruleIds: [deny.id],
        values: ['maxInputPrice=1000000'],
      },
    ]);
  });
});

describe('report mode', () => {
  it('counts a report rule that would take access away', () => {
    const deny = rule(denyModels('gpt-5'), 'report');
    expect(oracleDecision(request([deny]))).toEqual({
      permitted: ALL,
      violations: [],
      shadow: { permitted: ['acme/llama-3', 'groq/llama-3'], would_deny: [deny.id], would_allow: [] },
    });
  });

  it('counts a report allow rule that would give access, and not as a denial', () => {
    const enforced = rule(allowModels('gpt-5'));
    const more = rule(allowModels('llama-3'), 'report');
    const elsewhere = rule(allowProviders('groq'), 'report');
    const { shadow } = oracleDecision(request([enforced, more, elsewhere]));
    expect(shadow).toEqual({
      permitted: ['groq/llama-3'],
      would_deny: [],
      would_allow: [elsewhere.id, more.id].sort(),
    });
  });

  it('does not count a rule that changes nothing', () => {
    const rules = [rule(denyModels('gpt-5')), rule(denyModels('gpt-5'), 'report')];
    expect(oracleDecision(request(rules, { candidates: [PAID] })).shadow).toEqual({
      permitted: [],
      would_deny: [],
      would_allow: [],
    });
  });
});

it('answers what the decision schema describes', () => {
  const decision = oracleDecision(request([rule(denyModels('*')), rule(allowIps('::/0'), 'report')]));
  expect(validatePolicyDecision(decision)).toBe(true);
});

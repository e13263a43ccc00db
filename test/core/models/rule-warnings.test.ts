import { describe, expect, it } from 'vitest';
import { KnownNames, ruleWarnings } from '../../../src/core/known-names.ts';
import { canonicalRule } from '../../../src/domain/rule-content.ts';
import type { RuleCreate } from '../../../src/generated/types.ts';
import { catalog } from '../../admin/tenants.ts';
import { PROXIES_UNSET } from '../../support/warnings.ts';

const known = 'sandbox-free';

const names = new KnownNames(catalog, {
  providers: ['acme'],
  models: ['acme/org/model-7b'],
  tags: ['team:research'],
  aliases: ['fast', 'sandbox-paid'],
});

const warnings = (rule: RuleCreate, trustedProxies?: []): string[] =>
  ruleWarnings(canonicalRule(rule), names, trustedProxies);

describe('a rule is accepted with a warning', () => {
  it('for each model name that the catalogue does not know', () => {
    const custom = ['acme/org/model-7b', 'acme/*', 'acme/org/*', 'acme/unknown', 'acme/x*'];
    const models = [known, `sandbox/${known}`, 'sandbox/*', '*', 'gpt-unknown', 'nowhere/*', ...custom];
    expect(warnings({ ruleType: 'deny_models', ruleValue: { models } })).toEqual([
      '"gpt-unknown" is not the name of a model in the catalogue.',
      'No name of a model in the catalogue begins with "nowhere/".',
      '"acme/unknown" is not the name of a model in the catalogue.',
      'No name of a model in the catalogue begins with "acme/x".',
    ]);
  });

  it('for each provider that is not one, which may be a custom provider named barely', () => {
    const providers = ['sandbox', 'custom', 'acme', 'custom:acme', 'custom:other', 'elsewhere'];
    expect(warnings({ ruleType: 'allow_providers', ruleValue: { providers } })).toEqual([
      '"acme" is not a provider in the catalogue; did you mean `custom:acme`?',
      '"custom:other" is not a custom provider of the organization.',
      '"elsewhere" is not a provider in the catalogue; a custom provider is written "custom:elsewhere".',
    ]);
  });

  it('with the name that was probably meant, if one is near', () => {
    const models = [
      'gpt-5-mni',
      'GPT-5-Mini',
      'opnai/gpt-5-mini',
      'opnai/*',
      'gtp-5*',
      'gpt5-*',
      'acme/org/model-7',
      'gpt-unknown',
    ];
    const meant = warnings({ ruleType: 'deny_models', ruleValue: { models } }).map((text) => text.split('; ')[1]);
    expect(meant).toEqual([
      'did you mean `gpt-5-mini`?',
      'did you mean `gpt-5-mini`?',
      'did you mean `openai/gpt-5-mini`?',
      'did you mean `openai/*`?',
      'did you mean `gpt-5*`?',
      'did you mean `gpt-5-*`?',
      'did you mean `acme/org/model-7b`?',
      undefined,
    ]);
    const providers = ['opnai', 'OpenAI', 'custom:acm'];
    expect(warnings({ ruleType: 'deny_providers', ruleValue: { providers } })).toEqual([
      '"opnai" is not a provider in the catalogue; did you mean `openai`?',
      '"OpenAI" is not a provider in the catalogue; did you mean `openai`?',
      '"custom:acm" is not a custom provider of the organization; did you mean `custom:acme`?',
    ]);
  });

  it('with no more searches for such names than a write of a rule can bear', () => {
    const models = Array.from({ length: 1000 }, (_, index) => `sandbox-fr${index.toString(36).padStart(2, '-')}x`);
    const rule = canonicalRule({ ruleType: 'deny_models', ruleValue: { models } });
    const texts = ruleWarnings(rule, new KnownNames(catalog), []);
    expect([texts.length, texts.filter((text) => text.includes('did you mean')).length]).toEqual([1000, 100]);
  });

  it('for an IPv6 range that seems to hold every IPv4 client', () => {
    const ipCidrs = ['::/0', '2001:db8::/32', '0.0.0.0/0'];
    expect(warnings({ ruleType: 'allow_ip_cidrs', ruleValue: { ipCidrs } }, [])).toEqual([
      '"::/0" holds IPv6 addresses only; IPv4 clients need a range of their own.',
    ]);
  });

  it('for any IP rule while TRUSTED_PROXIES is unset: who is denied then, and what to set', () => {
    expect(warnings({ ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['10.0.0.0/8'] } })).toEqual([PROXIES_UNSET]);
    expect(warnings({ ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['10.0.0.0/8'] } }, [])).toEqual([]);
  });

  it('never for a price', () => {
    expect(warnings({ ruleType: 'allow_pricing', ruleValue: { pricingType: 'free' } })).toEqual([]);
  });
});

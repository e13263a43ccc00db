import { describe, expect, it } from 'vitest';
import { ruleWarnings } from '../../src/admin/rule-warnings.ts';
import { canonicalRule } from '../../src/domain/rule-content.ts';
import type { RuleCreate } from '../../src/generated/types.ts';
import { catalog } from './tenants.ts';

const known = 'sandbox-free';

const warnings = (rule: RuleCreate, trustedProxies?: []): string[] =>
  ruleWarnings(
    canonicalRule(rule),
    { catalog, trustedProxies },
    { providers: ['acme'], models: ['acme/org/model-7b'] },
  );

const UNSET =
  'TRUSTED_PROXIES is not set: the client address is whatever X-Forwarded-For says, and may be forged or missing.';

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
    const providers = ['sandbox', 'custom', 'acme', 'custom:acme', 'custom:other'];
    expect(warnings({ ruleType: 'allow_providers', ruleValue: { providers } })).toEqual([
      '"acme" is not a provider in the catalogue; a custom provider is written "custom:acme".',
      '"custom:other" is not a custom provider of the organization.',
    ]);
  });

  it('for an IPv6 range that seems to hold every IPv4 client', () => {
    const ipCidrs = ['::/0', '2001:db8::/32', '0.0.0.0/0'];
    expect(warnings({ ruleType: 'allow_ip_cidrs', ruleValue: { ipCidrs } }, [])).toEqual([
      '"::/0" holds IPv6 addresses only; IPv4 clients need a range of their own.',
    ]);
  });

  it('for any IP rule while nobody says which proxies are trusted', () => {
    expect(warnings({ ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['10.0.0.0/8'] } })).toEqual([UNSET]);
    expect(warnings({ ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['10.0.0.0/8'] } }, [])).toEqual([]);
  });

  it('never for a price', () => {
    expect(warnings({ ruleType: 'allow_pricing', ruleValue: { pricingType: 'free' } })).toEqual([]);
  });
});

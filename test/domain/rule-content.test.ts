import { describe, expect, it } from 'vitest';
import { ApiError } from '../../src/domain/errors.ts';
import { readRule } from '../../src/domain/rule-content.ts';

/** Message and place of the 400 with which a body is refused. */
function refusal(body: unknown): { status: number; message: string; param: string | null } | string {
  try {
    readRule(body);
    return 'accepted';
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { status: error.status, message: error.message, param: error.param };
  }
}

const MODEL =
  'must be a model id (letters, digits and . _ : @ / -, at most 512 of them) or a prefix of one that ends in its only *';

describe('a rule as written', () => {
  it('gets its defaults: in force, enforced, without a description', () => {
    const ruleValue = { models: ['gpt-x', 'openai/*', 'gpt-x'] };
    expect(readRule({ ruleType: 'deny_models', ruleValue })).toEqual({
      ruleType: 'deny_models',
      ruleValue,
      canonical: { ruleType: 'deny_models', ruleValue: { models: ['gpt-x', 'openai/*'] } },
      status: 'active',
      mode: 'enforce',
      description: null,
    });
  });

  it('keeps ranges as written and knows them in canonical form', () => {
    const ruleValue = { ipCidrs: ['10.1.2.3/8', '::ffff:192.0.2.0/120', '2001:DB8::1/32', '10.0.0.0/8'] };
    const rule = readRule({ ruleType: 'allow_ip_cidrs', ruleValue });
    expect(rule.ruleValue).toEqual(ruleValue);
    expect(rule.canonical.ruleValue).toEqual({ ipCidrs: ['10.0.0.0/8', '192.0.2.0/24', '2001:db8::/32'] });
  });

  it('keeps price caps as decimal strings, also those given as numbers', () => {
    const rule = readRule({
      ruleType: 'deny_pricing',
      ruleValue: { pricingType: 'paid', maxInputPrice: 2.5, maxOutputPrice: '10.00' },
    });
    expect(rule.ruleValue).toEqual({ pricingType: 'paid', maxInputPrice: '2.5', maxOutputPrice: '10.00' });
    expect(rule.canonical.ruleValue).toEqual({ pricingType: 'paid', maxInputPrice: '2.5', maxOutputPrice: '10' });
  });

  it.each([
    [{ models: ['ok', 'a*b'] }, '/ruleValue/models/1', `/ruleValue/models/1 ("a*b") ${MODEL}.`],
    [{ models: ['späth'] }, '/ruleValue/models/0', `/ruleValue/models/0 ("späth") ${MODEL}.`],
    [{ models: [''] }, '/ruleValue/models/0', `/ruleValue/models/0 ("") ${MODEL}.`],
    [{ models: [7] }, '/ruleValue/models/0', `/ruleValue/models/0 (7) ${MODEL}.`],
    [{ models: [{}] }, '/ruleValue/models/0', `/ruleValue/models/0 ${MODEL}.`],
    [{ models: ['x'.repeat(513)] }, '/ruleValue/models/0', `/ruleValue/models/0 ("${'x'.repeat(99)}…) ${MODEL}.`],
    [{ models: [] }, '/ruleValue/models', '/ruleValue/models must hold at least one entry.'],
    [{ models: new Array(1001).fill('x') }, '/ruleValue/models', '/ruleValue/models must hold at most 1000 entries.'],
    [{ models: 'x' }, '/ruleValue/models', '/ruleValue/models ("x") must be of type array.'],
    [{ providers: ['openai'] }, '/ruleValue/models', '/ruleValue/models is missing.'],
    [{ models: ['x'], more: 1 }, '/ruleValue/more', '/ruleValue/more (1) is not a known field.'],
  ])('is refused for the models %j', (ruleValue, param, message) => {
    expect(refusal({ ruleType: 'deny_models', ruleValue })).toEqual({ status: 400, message, param });
  });

  it.each([
    ['10.0.0.0', '"10.0.0.0" has no prefix length; a single address ends in /32 or /128.'],
    ['10.0.0.0/33', '"10.0.0.0/33" must end in a prefix length from 0 to 32.'],
    ['010.0.0.0/8', '"010.0.0.0/8" does not begin with an IPv4 or IPv6 address.'],
    ['fe80::1%eth0/64', '"fe80::1%eth0/64" does not begin with an IPv4 or IPv6 address.'],
  ])('is refused for the range %s', (range, fault) => {
    expect(refusal({ ruleType: 'deny_ip_cidrs', ruleValue: { ipCidrs: ['::1/128', range] } })).toEqual({
      status: 400,
      message: `/ruleValue/ipCidrs/1 is not a CIDR range: ${fault}`,
      param: '/ruleValue/ipCidrs/1',
    });
  });

  it('is refused for a provider with a *', () => {
    expect(refusal({ ruleType: 'allow_providers', ruleValue: { providers: ['open*'] } })).toEqual({
      status: 400,
      message:
        '/ruleValue/providers/0 ("open*") must be a provider id (letters, digits and . _ : @ / -, at most 512 of them).',
      param: '/ruleValue/providers/0',
    });
  });

  it.each([
    [{}, '/ruleValue must hold at least one field.', '/ruleValue'],
    [{ maxInputPrice: '1.1234567' }, 'An amount may have at most 6 decimal places.', '/ruleValue/maxInputPrice'],
    [{ maxInputPrice: 'NaN' }, 'An amount must be a plain decimal number, such as "12.5".', '/ruleValue/maxInputPrice'],
    [{ maxOutputPrice: -1 }, 'An amount must be a plain decimal number, such as "12.5".', '/ruleValue/maxOutputPrice'],
    [{ maxOutputPrice: 9_000_001 }, 'An amount may be at most 9000000 USD.', '/ruleValue/maxOutputPrice'],
    [{ pricingType: 'cheap' }, '/ruleValue/pricingType ("cheap") must be one of free, paid.', '/ruleValue/pricingType'],
    [
      { maxInputPrice: null },
      '/ruleValue/maxInputPrice (null) must be a decimal string or a number, in USD per million tokens.',
      '/ruleValue/maxInputPrice',
    ],
  ])('is refused for the price %j', (ruleValue, message, param) => {
    expect(refusal({ ruleType: 'allow_pricing', ruleValue })).toEqual({ status: 400, message, param });
  });

  it.each([
    [{ mode: 'dry' }, '/mode ("dry") must be one of enforce, report.', '/mode'],
    [{ status: 'off' }, '/status ("off") must be one of active, inactive.', '/status'],
    [{ description: 'x'.repeat(257) }, undefined, '/description'],
    [{ owner: 'me' }, '/owner ("me") is not a known field.', '/owner'],
  ])('is refused for %j', (fields, message, param) => {
    const found = refusal({ ruleType: 'deny_models', ruleValue: { models: ['x'] }, ...fields });
    expect(found).toMatchObject({ status: 400, param, ...(message === undefined ? {} : { message }) });
  });

  it.each([[null], ['deny'], [[]]])('is refused as a whole when it is %j', (body) => {
    expect(refusal(body)).toEqual({ status: 400, message: 'The request body must be of type object.', param: '' });
  });

  it('is refused for an unknown or missing type', () => {
    expect(refusal({ ruleType: 'deny_all', ruleValue: { models: ['x'] } })).toMatchObject({ param: '/ruleType' });
    expect(refusal({ ruleValue: { models: ['x'] } })).toEqual({
      status: 400,
      message: '/ruleType is missing.',
      param: '/ruleType',
    });
    expect(refusal({ ruleValue: { providers: ['x'] } })).toEqual({
      status: 400,
      message: '/ruleType is missing.',
      param: '/ruleType',
    });
  });
});

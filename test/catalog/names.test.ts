// Issue 12, 7: the names of a candidate are those of the contract, wherever the mapping is listed.
import { describe, expect, it } from 'vitest';
import { createCatalog } from '../../src/catalog/catalog.ts';
import { ManualClock } from '../../src/domain/time.ts';
import { reportOn } from '../workbench/fixture-folder.ts';

const clock = new ManualClock('2026-11-21T00:00:00Z');
const models = [{ id: 'meta/llama', prices: {} }];
const upstream = { name: 'gpu-box', baseUrl: 'http://127.0.0.1:1/v1', apiKey: undefined, models, fields: [] };
const catalog = createCatalog({ sandbox: true, upstreams: [upstream], clock });

describe('the names of a mapping', () => {
  it('are canonical id and aliases, `provider/` before each, and before the upstream id: in the whole catalogue', () => {
    const aliases = new Map(catalog.models().map((model) => [model.id, model.aliases]));
    const faults = catalog.mappings().filter(({ providerId, modelId, externalId, names }) => {
      const bare = [modelId, ...(aliases.get(modelId) ?? [])];
      const wanted = [...bare, ...bare.map((name) => `${providerId}/${name}`), `${providerId}/${externalId}`];
      return new Set(wanted).symmetricDifference(new Set(names)).size > 0;
    });
    expect(faults).toEqual([]);
  });

  it('are the same of an upstream of the environment', () => {
    const names = catalog.mappings().find(({ providerId }) => providerId === 'gpu-box')?.names;
    expect(names).toEqual(['meta--llama', 'gpu-box/meta--llama', 'gpu-box/meta/llama']);
  });

  it('are the same in a fixture: a rule by `provider/<upstream id>` decides, and a request by it is served', () => {
    const { results } = reportOn(`
name: A rule means a model by its provider's own id
given:
  catalog: { models: { swift-1: { providers: { acme: { externalId: birds/swift-2026 }, borealis: {} } } } }
  keys: { ci: { rules: { no-acme-swift: { deny_models: [acme/birds/swift-2026] } } } }
requests: { model: [swift-1, acme/birds/swift-2026] }
expect:
  - { model: swift-1, permit: borealis/swift-1, violations: { acme/swift-1: no-acme-swift } }
  - { model: acme/birds/swift-2026, deny: key deny_models, rules: no-acme-swift }
`);
    expect(results.map(({ status }) => status)).toEqual(['passed']);
  });
});

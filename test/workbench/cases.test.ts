// The fixtures of test/policy/cases are the specification of the policy (policy/README.md, "How a decision is made").
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { createCatalog } from '../../src/catalog/catalog.ts';
import { systemClock } from '../../src/domain/time.ts';
import { createPdp } from '../../src/policy/pdp.ts';
import { FixtureSources } from '../../src/workbench/fixtures/fixture-source.ts';
import { testPolicy } from '../../src/workbench/fixtures/test-policy.ts';

const folder = fileURLToPath(new URL('../policy/cases', import.meta.url));
const result = testPolicy({
  pdp: createPdp(),
  sources: new FixtureSources(),
  realCatalog: () => createCatalog({ sandbox: true, upstreams: [], clock: systemClock }),
  paths: [folder],
  cwd: folder,
  coverage: true,
});

if ('faults' in result) throw new AggregateError(result.faults, 'The cases make no sense.');
const { results, coverage } = result.report;

describe.each(results.map((each) => [each.fixture.name, each] as const))('%s', (_, { status, cases }) => {
  it.each(cases.map((each) => [each.label, each] as const))('%s', (_label, { differences }) => {
    expect(differences).toEqual([]);
  });

  it('is not skipped', () => expect(status).not.toBe('skipped'));
});

describe('the cases', () => {
  it('are at least sixty fixtures', () => expect(results.length).toBeGreaterThanOrEqual(60));

  it('hold no rule that decides nothing', () => {
    expect(coverage?.rules.uncovered.map(({ rule }) => rule.id)).toEqual([]);
  });

  it('show each rule type decide in each scope', () => {
    expect(coverage?.kinds).toEqual({ covered: 24, total: 24, uncovered: [] });
  });
});

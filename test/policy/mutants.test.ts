/** How the Rego is broken, and what policy/MUTANTS.md says of it; `npm run policy:mutate`, which needs `opa`, does the rest. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { compareWithExplained, explainedSurvivors } from '../../scripts/opa/explained-survivors.ts';
import { mutantsOf } from '../../scripts/opa/mutants.ts';
import { POLICY_DIRECTORY, policySources } from '../../src/policy/bundle.ts';

const rego = policySources(POLICY_DIRECTORY).filter((file) => file.endsWith('.rego'));
const mutants = rego.flatMap((file) => mutantsOf(file, readFileSync(path.join(POLICY_DIRECTORY, file), 'utf8')));

describe('the mutants', () => {
  it('of a line are what can be wrong with it', () => {
    const source =
      'package x\n\n# not this\nviolated if {\n\tcount(input.names) > 0\n\tnot allowed(rules, input.action)\n}\n';
    expect(mutantsOf('x.rego', source).map(({ line, change, after }) => [line, change, after])).toEqual([
      [5, 'add a negation', 'not count(input.names) > 0'],
      [5, 'invert a comparison', 'count(input.names) <= 0'],
      [5, 'invert a comparison', 'count(input.names) >= 0'],
      [5, 'invert a comparison', 'count(input.names) < 0'],
      [5, 'change a constant', 'count(input.names) > 1'],
      [5, 'drop the line', ''],
      [6, 'drop a negation', 'allowed(rules, input.action)'],
      [6, 'swap the arguments', 'not allowed(input.action, rules)'],
      [6, 'drop the line', ''],
    ]);
  });

  it('are many, of every file, each different from the policy in one line', () => {
    expect(mutants.length).toBeGreaterThan(400);
    expect(new Set(mutants.map(({ file }) => file))).toEqual(new Set(rego));
    for (const { file, line, source } of mutants) {
      const original = readFileSync(path.join(POLICY_DIRECTORY, file), 'utf8').split('\n');
      const changed = source.split('\n');
      expect(original.flatMap((text, index) => (text === changed[index] ? [] : [index + 1]))).toEqual([line]);
      expect(changed.length).toBe(original.length);
    }
  });

  it('that are explained are among them', () => {
    expect(explainedSurvivors().length).toBeGreaterThan(0);
    expect(compareWithExplained(mutants).stale).toEqual([]);
  });
});

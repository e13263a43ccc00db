// The same fixtures, judged by the rules of a database or an exported document instead of their own.
import { expect, it } from 'vitest';
import { createCatalog } from '../../src/catalog/catalog.ts';
import { systemClock } from '../../src/domain/time.ts';
import type { WorldDocumentRule } from '../../src/generated/types.ts';
import { readWorldDocument } from '../../src/workbench/world/world-document.ts';
import { faultsIn, reportOn } from './fixture-folder.ts';

interface Rules {
  readonly organization?: WorldDocumentRule[];
  readonly member?: WorldDocumentRule[];
  readonly key?: WorldDocumentRule[];
}

const world = ({ organization = [], member = [], key = [] }: Rules) =>
  readWorldDocument(
    {
      organizations: [
        {
          id: 'org_1',
          rules: organization,
          members: [
            { id: 'mem_1', email: 'dev@example.com', rules: member },
            { id: 'mem_2', email: 'ops@example.com' },
          ],
          keys: [
            { id: 'key_1', memberId: 'mem_1', description: 'CI', rules: key },
            { id: 'key_2', memberId: 'mem_2', description: 'Twin' },
            { id: 'key_3', memberId: 'mem_2', description: 'Twin' },
          ],
        },
        { id: 'org_2', members: [{ id: 'mem_3' }], keys: [{ id: 'key_4', memberId: 'mem_3', description: 'Foreign' }] },
      ],
    },
    createCatalog({ sandbox: true, upstreams: [], clock: systemClock }),
  );

const denyModels = (id: string, ...models: string[]): WorldDocumentRule => ({
  id,
  ruleType: 'deny_models',
  ruleValue: { models },
});

const FIXTURE = `name: CI may not use the paid model
given:
  catalog: real
  keys: { CI: { rules: { no-paid: { deny_models: [sandbox-paid, sandbox-slow] } } } }
requests: { model: [sandbox-paid, sandbox-free] }
expect:
  - { model: sandbox-paid, deny: key deny_models, rules: no-paid }
  - { model: sandbox-free, permit: all }
`;

/** The status of the fixture and, request by request, what came where it should not. */
function statusIn(rules: Rules, text = FIXTURE): [string | undefined, string[]] {
  const [result] = reportOn(text, { world: world(rules) }).results;
  return [result?.status, result?.cases.flatMap(({ differences }) => differences.map(({ came }) => came)) ?? []];
}

it('passes where the rules are there', () => {
  expect(statusIn({ key: [denyModels('rule_1', 'sandbox-slow', 'sandbox-paid')] })).toEqual(['passed', []]);
});

it('fails where the rule is missing, however the fixture has it', () => {
  expect(statusIn({})).toEqual(['failed', ['permit sandbox/sandbox-paid']]);
});

it('fails where another rule denies', () => {
  expect(statusIn({ member: [denyModels('rule_1', 'sandbox-paid')] })[0]).toBe('failed');
  expect(statusIn({ key: [denyModels('rule_1', 'sandbox-paid')] })).toEqual(['failed', ['rules rule_1']]);
});

it.each([
  ['the same id', denyModels('no-paid', 'sandbox-p*')],
  ['its id as description', { ...denyModels('rule_1', 'sandbox-p*'), description: 'no-paid' }],
  ['the same content', denyModels('rule_1', 'sandbox-slow', 'sandbox-paid', 'sandbox-slow')],
])('calls a rule by the name that the fixture has for it: %s', (_, rule) => {
  expect(statusIn({ key: [rule] })).toEqual(['passed', []]);
});

it('judges by the rules of the owner and of the organization as well', () => {
  const text = FIXTURE.replace('rules: no-paid', 'rules: rule_9');
  expect(statusIn({ member: [denyModels('rule_9', '*')] }, text.replace('key deny', 'member deny'))[1]).toEqual([
    'deny member deny_models (Access denied: model not allowed: * is denied by rule rule_9. This is an organization member IAM rule set by the org admin.)',
  ]);
  const called = { ...denyModels('rule_9', '*'), description: 'All closed' };
  expect(statusIn({ key: [called] }, text)[1]).toEqual([
    'deny key deny_models (Access denied: model not allowed: * is denied by rule rule_9 (All closed).)',
  ]);
  const everywhere = text.replace('key deny', 'organization deny').replace('permit: all', 'deny: any');
  expect(statusIn({ organization: [denyModels('rule_9', '*')] }, everywhere)).toEqual(['passed', []]);
});

it('takes a key by its id, and an owner by e-mail or id', () => {
  const rules = { key: [denyModels('rule_1', 'sandbox-slow', 'sandbox-paid')] };
  const owned = (owner: string) =>
    FIXTURE.replace('CI: {', `key_1: { owner: ${owner},`).replace('keys:', `members: { ${owner}: {} }\n  keys:`);
  expect(statusIn(rules, owned('dev@example.com'))).toEqual(['passed', []]);
  expect(statusIn(rules, owned('mem_1'))).toEqual(['passed', []]);
  expect(faultsIn({ 'a.yaml': owned('ops@example.com') }, { world: world(rules) })).toEqual([
    'a.yaml:5:11: The key "key_1" belongs to dev@example.com, not to ops@example.com.',
  ]);
});

it('names a key that is not there, that two bear, or that is of another organization', () => {
  const faults = (name: string, more = '') =>
    faultsIn({ 'a.yaml': FIXTURE.replace('CI: {', `${more}${name}: {`) }, { world: world({}) });
  expect(faults('Nightly')).toEqual(['a.yaml:4:11: There is no key with the id or description "Nightly".']);
  expect(faults('Twin')).toEqual(['a.yaml:4:11: "Twin" means several keys: key_2, key_3.']);
  expect(faults('Foreign', 'CI: {}, ')).toEqual(['a.yaml:4:19: The keys are of several organizations.']);
});

it('covers every rule of that world, those that no fixture meets included', () => {
  const rules = {
    organization: [denyModels('rule_org', 'withdrawn-1')],
    key: [{ ...denyModels('rule_ci', 'sandbox-paid'), description: 'no-paid' }],
  };
  const { coverage } = reportOn(FIXTURE, { world: world(rules), coverage: true });
  expect([coverage?.rules.covered, coverage?.rules.total]).toEqual([1, 2]);
  expect(coverage?.rules.uncovered.map(({ scope, rule, storedId }) => [scope, rule.id, storedId])).toEqual([
    ['organization', 'rule_org', 'rule_org'],
  ]);
});

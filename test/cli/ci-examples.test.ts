// The workflows in scripts/deploy/ci, walked with plain sh: what their steps run, in their order, on a database and a repository.
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { childEnv } from '../support/network-guard-env.ts';
import { type CommandLine, createCommandLine, jsonOf, type Outcome } from './command-line.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const example = (name: string) => parse(readFileSync(path.join(root, 'scripts/deploy/ci', name), 'utf8'));

/** What one service runs: the scripts of its jobs, and the variables that it gives them. */
interface Service {
  readonly test: string;
  readonly plan: string;
  readonly apply: string;
  /** Of a merge request that may not widen access, and otherwise. */
  readonly gated: string;
  readonly open: string;
  readonly env: Readonly<Record<string, string>>;
}

function github(): Service {
  const { jobs } = example('github-actions.yml');
  const [test, plan] = jobs.plan.steps.filter(({ run }: { run?: string }) => run !== undefined);
  const [apply, ...others] = jobs.apply.steps.filter(({ run }: { run?: string }) => run !== undefined);
  expect(others).toEqual([]);
  const [, gated = '', open = ''] = / && '([^']*)' \|\| '([^']*)' }}$/.exec(plan.env.FAIL_ON) ?? [];
  const env = { GITHUB_SHA: '3f2a91c', GITHUB_STEP_SUMMARY: 'summary.md' };
  return { test: test.run, plan: plan.run, apply: apply.run, gated, open, env };
}

function gitlab(): Service {
  const { variables, workflow, ...jobs } = example('gitlab-ci.yml');
  const script = (name: string): string => jobs[name].script.join('\n');
  return {
    test: script('policy-test'),
    plan: script('policy-plan'),
    apply: script('policy-apply'),
    gated: variables.FAIL_ON,
    open: workflow.rules[0].variables.FAIL_ON,
    env: { CI_COMMIT_SHA: '3f2a91c' },
  };
}

const rules = (...models: string[]): string => `keys:
  First gateway key:
    rules:
      no-paid:
        ruleType: deny_models
        ruleValue: { models: [${models.join(', ')}] }
`;

const CASES = `name: The first key has no paid model
given: { catalog: real, keys: { First gateway key: {} } }
requests: { model: [sandbox-free, sandbox-paid] }
expect:
  - { model: sandbox-free, permit: all }
  - { model: sandbox-paid, deny: key deny_models, rules: no-paid }
`;

describe.each([
  ['GitHub Actions', github],
  ['GitLab', gitlab],
])('%s', (_, read) => {
  const service = read();
  let portcullis: CommandLine;
  let repository: string;

  beforeEach(async () => {
    portcullis = await createCommandLine();
    repository = path.join(portcullis.folder, 'repository');
    for (const folder of ['rules', 'cases']) mkdirSync(path.join(repository, 'policy', folder), { recursive: true });
    writeFileSync(path.join(repository, 'policy/cases/ci.yaml'), CASES);
  });
  afterEach(() => portcullis.close());

  const merge = (...models: string[]): void =>
    writeFileSync(path.join(repository, 'policy/rules/keys.yaml'), rules(...models));

  /** As the services run a script: by sh, which stops at the first command that fails. */
  const sh = (script: string, failOn = service.open): Promise<Outcome> =>
    new Promise((resolve) => {
      const env = childEnv({
        ...service.env,
        FAIL_ON: failOn,
        DATA_DIR: portcullis.folder,
        PORTCULLIS: path.join(root, 'scripts/portcullis.js'),
        PATH: `${path.dirname(process.execPath)}${path.delimiter}${process.env.PATH ?? ''}`,
      });
      execFile('sh', ['-e', '-c', script], { cwd: repository, env }, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
      );
    });

  const stored = async () => jsonOf(await portcullis.run('rules', 'list', '--json'));

  it('tests and plans a merge request, and applies it when it is merged', async () => {
    merge('sandbox-paid', 'sandbox-slow');
    expect(await sh(service.test)).toMatchObject({ code: 0 });
    expect(await sh(service.plan, service.gated)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('1 rule to add, 0 unchanged (source: policy).'),
    });
    expect(await stored()).toMatchObject({ rules: [] });
    rmSync(path.join(repository, 'plan.json'));

    expect(await sh(service.test)).toMatchObject({ code: 0 });
    expect(await sh(service.plan)).toMatchObject({ code: 0 });
    expect(await sh(service.apply)).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Applied: .*\.$/m) });
    expect(await stored()).toMatchObject({
      rules: [{ ruleValue: { models: ['sandbox-paid', 'sandbox-slow'] }, managedBy: { name: 'no-paid' } }],
    });
    const audit = await portcullis.run('audit', 'list', '--action', 'policy.apply', '--json');
    expect(jsonOf(audit)).toMatchObject({ entries: [{ after: { revision: '3f2a91c' } }] });
  });

  it('stops at a fixture that fails, and at new access until someone says that it is meant', async () => {
    merge('sandbox-slow');
    expect(await sh(service.test)).toMatchObject({ code: 1 });
    merge('sandbox-paid', 'sandbox-slow');
    await sh(service.plan);
    await sh(service.apply);
    merge('sandbox-paid');
    expect(await sh(service.test)).toMatchObject({ code: 0 });
    expect(await sh(service.plan, service.gated)).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('portcullis: 1 newly permitted.'),
    });
    expect(await sh(service.plan, service.open)).toMatchObject({ code: 0 });
  });

  it('applies nothing when a rule has changed since the plan was approved', async () => {
    merge('sandbox-paid');
    await sh(service.plan);
    await portcullis.run('rules', 'add', '--organization', 'deny_models', 'sandbox-slow');
    const before = await stored();
    expect(await sh(service.apply)).toMatchObject({ code: 1, stderr: expect.stringContaining('Plan again') });
    expect(await stored()).toEqual(before);
  });
});

it('new access is for who has put a label on the merge request, and is no question any more when that is merged', () => {
  const { workflow } = example('gitlab-ci.yml');
  expect(
    workflow.rules.map(({ if: when, variables }: { if: string; variables?: object }) => [when, variables]),
  ).toEqual([
    ['$CI_MERGE_REQUEST_LABELS =~ /(^|,)new-access(,|$)/', { FAIL_ON: '' }],
    ['$CI_PIPELINE_SOURCE == "merge_request_event"', undefined],
    ['$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH', { FAIL_ON: '' }],
  ]);
  const [plan] = example('github-actions.yml').jobs.plan.steps.filter(({ name }: { name?: string }) => name === 'Plan');
  expect(plan.env.FAIL_ON).toContain(
    "github.event_name == 'pull_request' && !contains(github.event.pull_request.labels.*.name, 'new-access')",
  );
});

it('GitHub shows the plan where its approval is asked for', async () => {
  const service = github();
  expect(service.plan).toContain('"$GITHUB_STEP_SUMMARY"');
  expect(example('github-actions.yml').jobs.apply).toMatchObject({ needs: 'plan', environment: 'policy' });
});

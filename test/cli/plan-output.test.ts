// What `policy plan`, `diff` and `show` print where a change concerns many: counts, examples, and Markdown for a pull request.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createKey } from '../../src/admin/keys/keys.ts';
import { changeGroup, createGroup } from '../../src/admin/rules/groups.ts';
import { addMember } from '../../src/admin/tenants/members.ts';
import type { Database } from '../../src/store/db/database.ts';
import { type CommandLine, createCommandLine, jsonOf } from './command-line.ts';

const KEYS = 1000;
const MEMBERS = 20;
const IN_GROUP = 150;

let portcullis: CommandLine;

/** 1,000 keys of 20 developers; 150 of them are in the group `contractors`. */
function addHolders(db: Database, now: number): void {
  const { organizationId, projectId } = portcullis.first;
  const pepper = portcullis.secrets.peppers[0];
  const actor = { kind: 'cli', organizationId } as const;
  const owners = Array.from(
    { length: MEMBERS },
    (_, at) => addMember(db, actor, { email: `dev-${at}@example.com`, role: 'developer' }, now).member.id,
  );
  const keys = Array.from({ length: KEYS }, (_, at) => {
    const body = { projectId, createdBy: owners[at % MEMBERS], description: `ci-${at}` };
    return createKey(db, actor, body, { now, pepper }).key.id;
  });
  const { group } = createGroup(db, actor, { name: 'contractors' }, now);
  changeGroup(db, actor, group.id, { addKeys: keys.slice(0, IN_GROUP) }, now);
}

beforeAll(async () => {
  portcullis = await createCommandLine();
  await portcullis.store.write(addHolders);
  const folder = path.join(portcullis.folder, 'rules');
  mkdirSync(folder);
  writeFileSync(
    path.join(folder, 'organization.yaml'),
    `organization:
  rules:
    no-paid:
      ruleType: deny_models
      ruleValue: { models: [sandbox-paid] }
      description: "Ask <b>@finance</b> | first"
groups:
  contractors:
    rules:
      free-only:
        ruleType: allow_models
        ruleValue: { models: [sandbox-free] }
`,
  );
});
afterAll(() => portcullis.close());

const policy = (...args: string[]) => portcullis.run('policy', ...args);
const masked = (text: string): string => text.replaceAll(/(?<=_|&#95;)[0-9a-f]{32}/g, '…');

const PLAN = `   OWNER              NAME       TYPE          VALUE         MODE     STATUS  DESCRIPTION
+  organization       no-paid    deny_models   sandbox-paid  enforce  active  Ask <b>@finance</b> | first
+  group contractors  free-only  allow_models  sandbox-free  enforce  active  -

2 rules to add, 0 unchanged (source: policy).

no longer permitted from any address, by added organization rule no-paid (deny_models, Ask <b>@finance</b> | first)
  850 keys of developers, such as ci-150, ci-151, ci-152
  20 developers, such as dev-0@example.com, dev-1@example.com, dev-2@example.com
  key_… (First gateway key)
  owner@localhost (member, a key without rules)
    - sandbox/sandbox-paid

no longer permitted from any address, by added group contractors rule free-only (allow_models)
  150 keys of developers in the group contractors, such as ci-0, ci-1, ci-2
    - sandbox/sandbox-faulty
    - sandbox/sandbox-image-max
    - sandbox/sandbox-image-plus
    - sandbox/sandbox-slow

no longer permitted from any address, by added organization rule no-paid (deny_models, Ask <b>@finance</b> | first), added group contractors rule free-only (allow_models)
  150 keys of developers in the group contractors, such as ci-0, ci-1, ci-2
    - sandbox/sandbox-paid

0 newly permitted, 1622 no longer permitted (pairs of a key or member and a mapping).
Without a credential to call them, 0 more newly permitted, 34350 no longer permitted: --without-credential lists them.
Judged by what the server of 2026-01-05T12:00:00.000Z serves: sandbox.
`;

const COMMENT = `**Policy plan:** 2 rules to add, 0 unchanged (source&#58; policy).

|  | OWNER | NAME | TYPE | VALUE | MODE | STATUS | DESCRIPTION |
| --- | --- | --- | --- | --- | --- | --- | --- |
| + | organization | no-paid | deny&#95;models | sandbox-paid | enforce | active | Ask &#60;b&#62;&#64;finance&#60;/b&#62; &#124; first |
| + | group contractors | free-only | allow&#95;models | sandbox-free | enforce | active | - |

0 newly permitted, 1622 no longer permitted (pairs of a key or member and a mapping).

Without a credential to call them, 0 more newly permitted, 34350 no longer permitted: --without-credential lists them.

<details><summary>Who gains and loses what</summary>

<pre>no longer permitted from any address, by added organization rule no-paid (deny&#95;models, Ask &#60;b&#62;&#64;finance&#60;/b&#62; &#124; first)
  850 keys of developers, such as ci-150, ci-151, ci-152
  20 developers, such as dev-0&#64;example.com, dev-1&#64;example.com, dev-2&#64;example.com
  key&#95;… (First gateway key)
  owner&#64;localhost (member, a key without rules)
    - sandbox/sandbox-paid

no longer permitted from any address, by added group contractors rule free-only (allow&#95;models)
  150 keys of developers in the group contractors, such as ci-0, ci-1, ci-2
    - sandbox/sandbox-faulty
    - sandbox/sandbox-image-max
    - sandbox/sandbox-image-plus
    - sandbox/sandbox-slow

no longer permitted from any address, by added organization rule no-paid (deny&#95;models, Ask &#60;b&#62;&#64;finance&#60;/b&#62; &#124; first), added group contractors rule free-only (allow&#95;models)
  150 keys of developers in the group contractors, such as ci-0, ci-1, ci-2
    - sandbox/sandbox-paid</pre>

</details>

Judged by what the server of 2026-01-05T12&#58;00&#58;00.000Z serves&#58; sandbox.
`;

describe('a plan of two rules for 1,000 keys', () => {
  it('counts who loses access by role and group, with examples, and leaves playground keys out', async () => {
    const { code, stdout } = await policy('plan', 'rules');
    expect(code).toBe(0);
    expect(masked(stdout)).toBe(PLAN);
    expect(stdout.split('\n').length).toBeLessThanOrEqual(60);
  });

  it('names everyone and everything with --full', async () => {
    const { stdout } = await policy('plan', 'rules', '--full');
    expect(stdout.split('\n').filter((line) => /^ {2}key_/.test(line))).toHaveLength(KEYS + IN_GROUP + 1);
  });

  it('is a comment in Markdown, in which text of people has no meaning', async () => {
    const out = path.join(portcullis.folder, 'plan.json');
    const { code, stdout, stderr } = await policy('plan', 'rules', '--markdown', '--out', 'plan.json');
    expect([code, stderr]).toEqual([0, '']);
    expect(masked(stdout)).toBe(COMMENT);
    expect(stdout).not.toContain('@');
    expect(JSON.parse(readFileSync(out, 'utf8'))).toEqual(jsonOf(await policy('plan', 'rules', '--json')));
  });

  it('is printed again from its file, without a database', async () => {
    const elsewhere = { DATA_DIR: path.join(portcullis.folder, 'none') };
    const { code, stdout } = await portcullis.runWith(elsewhere, 'policy', 'show', 'plan.json', '--markdown');
    expect([code, stdout.split('\n', 1)]).toEqual([
      0,
      ['**Policy plan:** 2 rules to add, 0 unchanged (source&#58; policy).'],
    ]);
  });
});

it('a format that prints nothing but JSON is not mixed with Markdown', async () => {
  expect(await policy('plan', 'rules', '--markdown', '--json')).toMatchObject({
    code: 2,
    stderr: "portcullis: option '--markdown' cannot be used with option '--json'\n",
  });
});

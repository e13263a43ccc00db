// One database, several processes: a rule that one of them writes holds in all of them on their next look.
import { rmSync } from 'node:fs';
import { expect, it } from 'vitest';
import { systemClock } from '../../src/domain/time.ts';
import { validator } from '../../src/lib/schemas.ts';
import { databasePath } from '../../src/store/db/data-dir.ts';
import { createStore } from '../../src/store/store.ts';
import { listOrganizations } from '../../src/store/tenants/tenants.ts';
import { bearer, JSON_TYPE } from '../support/chat.ts';
import { newDataDir } from '../support/gateway.ts';
import { send } from '../support/request.ts';
import { portcullis, serve } from './running.ts';

const validateRuleCreateAnswer = validator('RuleCreateAnswer');
const validateRuleList = validator('RuleList');

it('a rule written or deleted by one process holds in every other at once, whichever wrote it', async () => {
  const DATA_DIR = newDataDir();
  const server = await serve({ DATA_DIR });
  const master = bearer(/master key {3}(pclm_\w+)/.exec(server.said())?.[1] ?? '');
  // This process is the third: it keeps the database open, and remembers what it read while nothing changes.
  const store = createStore({ path: databasePath(DATA_DIR), clock: systemClock });
  try {
    const [organization] = await store.read(listOrganizations);
    const id = organization?.id ?? '';
    const path = '/v1/master/organization/iam';

    /** What each of the three makes of the rules now: the ids in force, and whether a call passes. */
    const views = async () => {
      const body = JSON.stringify({ model: 'sandbox-paid', messages: [{ role: 'user', content: 'Hello' }] });
      const headers = [bearer(server.key ?? ''), JSON_TYPE];
      const answer = await send(server.origin, { method: 'POST', path: '/v1/chat/completions', headers, body });
      const listed: unknown = JSON.parse((await portcullis(['rules', 'list', '--json'], { DATA_DIR })).stdout);
      if (!validateRuleList(listed)) throw new Error('no list of rules');
      return {
        status: answer.status,
        revision: Number(String(answer.headers['x-policy-revision']).split('.')[1]),
        listed: listed.rules.map((rule) => rule.id),
        compiled: (await store.subjectRules(id, [id])).get(id)?.text.match(/rule_[0-9a-f]{32}/)?.[0],
        known: await store.ruleRevision(id),
      };
    };
    const none = (revision: number) => ({ status: 200, revision, listed: [], compiled: undefined, known: revision });
    const denying = (rule: string, revision: number) => ({
      status: 403,
      revision,
      listed: [rule],
      compiled: rule,
      known: revision,
    });

    expect(await views()).toEqual(none(0));

    const body = JSON.stringify({ ruleType: 'deny_models', ruleValue: { models: ['sandbox-paid'] } });
    const made = await send(server.management, { method: 'POST', path, headers: [master, JSON_TYPE], body });
    if (!validateRuleCreateAnswer(made.json)) throw new Error(made.text);
    const first = made.json.rule.id;
    expect(await views()).toEqual(denying(first, 1));

    await portcullis(['rules', 'remove', first], { DATA_DIR });
    expect(await views()).toEqual(none(2));

    const add = ['rules', 'add', '--organization', 'deny_models', 'sandbox-paid', '--json'];
    const added: unknown = JSON.parse((await portcullis(add, { DATA_DIR })).stdout);
    if (!validateRuleCreateAnswer(added)) throw new Error('no rule');
    const second = added.rule.id;
    expect(await views()).toEqual(denying(second, 3));

    await send(server.management, { method: 'DELETE', path: `${path}/${second}`, headers: [master] });
    expect(await views()).toEqual(none(4));
  } finally {
    store.close();
    rmSync(DATA_DIR, { recursive: true, force: true });
  }
});

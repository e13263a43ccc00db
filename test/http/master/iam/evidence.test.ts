// GET …/iam/{ruleId}/evidence: the decisions that a rule in mode `report` would have changed.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { nextReportCounts, storeReportCounts } from '../../../../src/store/ledger/call-follower.ts';
import { ID, START, startMs } from '../../../admin/tenants.ts';
import { newDecision } from '../../../store/fixture.ts';
import { insertCall } from '../../../support/stored-calls.ts';
import { type ManagementServer, outcome, refused, startManagementServer } from '../management-server.ts';

let server: ManagementServer;
beforeEach(async () => {
  server = await startManagementServer();
});
afterEach(() => server.close());

const ofKey = (key: string): string => `/v1/master/keys/${key}/iam`;

/** @returns the rule's id */
async function report(path: string, model = 'large'): Promise<string> {
  const body = { ruleType: 'deny_models', ruleValue: { models: [model] }, mode: 'report' };
  return JSON.parse((await server.request('POST', path, { body })).text).rule.id;
}

/** A permitted call that the rules would have denied. @returns the decision's id */
async function store(rules: readonly string[], time: number, keyId: string = ID.ownerKey, memberId: string = ID.owner) {
  const shadow = { permitted: [], would_deny: rules, would_allow: [] };
  const decision = newDecision({ ruleRevision: 99, shadowJson: JSON.stringify(shadow) });
  const whose = { organizationId: ID.organization, projectId: ID.project, keyId, memberId };
  const { id } = await server.store.write((db) => insertCall(db, time, whose, decision));
  return id.replace('call_', 'dec_');
}

const decisionsIn = (text: string): string[] => JSON.parse(text).decisions.map(({ id }: { id: string }) => id);

describe('GET …/iam/{ruleId}/evidence', () => {
  it.each([ofKey(ID.ownerKey), `/v1/master/members/${ID.owner}/iam`, '/v1/master/organization/iam'])(
    'shows the decisions that name the rule, newest first, page by page: %s',
    async (path) => {
      const [rule, other] = [await report(path), await report(ofKey(ID.developerKey), 'small')];
      const [first, second] = [await store([rule], startMs + 100), await store([other, rule], startMs + 200)];
      await store([other], startMs + 300);
      await server.store.write((db) => {
        const counts = nextReportCounts(db);
        if (counts !== undefined) storeReportCounts(db, counts);
      });

      const page = await server.request('GET', `${path}/${rule}/evidence?limit=1`);
      expect(page.status).toBe(200);
      const { rule: shown, otherReportRules, decisions, nextCursor } = JSON.parse(page.text);
      expect(shown).toEqual(JSON.parse((await server.request('GET', `${path}/${rule}`)).text).rule);
      expect(shown.reportOnly).toEqual({
        since: START,
        wouldDeny: 2,
        wouldAllow: 0,
        lastSeenAt: '2026-01-31T12:00:00.200Z',
      });
      expect(otherReportRules).toBe(1);
      const listed = JSON.parse((await server.request('GET', `/v1/master/decisions?ruleId=${rule}&limit=1`)).text);
      expect(decisions).toEqual(listed.decisions);
      expect(decisions).toMatchObject([{ id: second, outcome: 'permit', shadowOutcome: 'deny' }]);
      const rest = await server.request('GET', `${path}/${rule}/evidence?cursor=${nextCursor}`);
      expect([decisionsIn(rest.text), JSON.parse(rest.text).nextCursor]).toEqual([[first], null]);
    },
  );

  it('forgets what the rule said before it was changed, and has nothing of one that is enforced', async () => {
    const path = ofKey(ID.ownerKey);
    const rule = await report(path);
    const revision = await server.store.read((db) =>
      db.connection.prepare<[], number>('SELECT ruleRevision FROM organizations ORDER BY id').pluck().get(),
    );
    const decision = newDecision({
      ruleRevision: revision ?? 0,
      shadowJson: JSON.stringify({ permitted: [], would_deny: [rule], would_allow: [] }),
    });
    const whose = { organizationId: ID.organization, projectId: ID.project, keyId: ID.ownerKey, memberId: ID.owner };
    await server.store.write((db) => insertCall(db, startMs + 100, whose, decision));
    const evidence = async () => decisionsIn((await server.request('GET', `${path}/${rule}/evidence`)).text).length;
    expect(await evidence()).toBe(1);
    await server.request('PATCH', `${path}/${rule}`, { body: { description: 'large ones' } });
    expect(await evidence()).toBe(1);
    await server.request('PATCH', `${path}/${rule}`, { body: { ruleValue: { models: ['small'] } } });
    expect(await evidence()).toBe(0);
    await server.request('PATCH', `${path}/${rule}`, { body: { mode: 'enforce' } });
    const { text } = await server.request('GET', `${path}/${rule}/evidence`);
    expect(JSON.parse(text)).toMatchObject({
      rule: { mode: 'enforce', reportOnly: null },
      decisions: [],
      nextCursor: null,
    });
  });

  it("shows developers the evidence of their own keys' rules alone", async () => {
    const own = await report(ofKey(ID.developerKey));
    const foreign = await report(ofKey(ID.ownerKey));
    const organization = await report('/v1/master/organization/iam');
    const decision = await store([own, organization], startMs + 100, ID.developerKey, ID.developer);
    await store([foreign, organization], startMs + 200);
    const { developer: token } = server.tokens;
    const get = (path: string) => server.request('GET', path, { token });

    expect(decisionsIn((await get(`${ofKey(ID.developerKey)}/${own}/evidence`)).text)).toEqual([decision]);
    expect(await outcome(get(`${ofKey(ID.ownerKey)}/${foreign}/evidence`))).toEqual({
      status: 404,
      body: refused('not_found', 'There is no such key.'),
    });
    const { status } = await get(`/v1/master/organization/iam/${organization}/evidence`);
    expect(status).toBe(403);
  });

  it('refuses a page that there is not, and knows no other rule', async () => {
    const rule = await report(ofKey(ID.ownerKey));
    const of = (key: string, query = '') => outcome(server.request('GET', `${ofKey(key)}/${rule}/evidence${query}`));
    expect(await of(ID.ownerKey, '?limit=201')).toEqual({
      status: 400,
      body: refused('invalid_request', 'limit must be a whole number from 1 to 200.', '/limit'),
    });
    expect(await of(ID.developerKey)).toEqual({ status: 404, body: refused('not_found', 'There is no such rule.') });
  });
});

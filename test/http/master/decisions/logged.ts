import { hash } from 'node:crypto';
import { idLike } from '../../../../src/domain/id.ts';
import { ID } from '../../../admin/tenants.ts';
import { newDecision } from '../../../store/fixture.ts';
import { insertCall } from '../../../support/stored-calls.ts';
import type { ManagementServer } from '../management-server.ts';

export const REQUEST = `req_${'7'.repeat(32)}`;

/** A key's rule, made by the API. */
export async function addRule({ request }: ManagementServer, key: string, description: string): Promise<string> {
  const body = { ruleType: 'deny_models', ruleValue: { models: ['large'] }, description };
  return JSON.parse((await request('POST', `/v1/master/keys/${key}/iam`, { body })).text).rule.id;
}

/** Stores a call of the key that the rule denied, as the ledger leaves it. @returns the ids of the call and the decision */
export async function storeDenied(
  { store }: ManagementServer,
  time: number | string,
  { rule, keyId, memberId }: { readonly rule: string; readonly keyId: string; readonly memberId: string },
): Promise<readonly [call: string, decision: string]> {
  const names = ['large', 'acme/large'];
  const candidate = { id: 'acme/large', names, provider_names: ['acme'], pricing_type: 'paid' };
  const violation = { scope: 'key', effect: 'deny', kind: 'models', ruleIds: [rule], values: ['large'] };
  const dataText = JSON.stringify({
    subjects: { [keyId]: { enforce: { deny_models: { rules: [rule], exact: { large: [rule] }, prefixes: {} } } } },
  });
  const decision = newDecision({
    outcome: 'deny',
    reasonJson: JSON.stringify(violation),
    violationsJson: JSON.stringify([{ ...violation, candidate: 'acme/large' }]),
    dataDigest: hash('sha256', dataText),
    dataText,
    inputJson: JSON.stringify({
      action: 'chat',
      client_ip: '192.0.2.1',
      subjects: [{ scope: 'key', id: keyId }],
      candidates: [candidate],
    }),
  });
  const { id } = await store.write((db) =>
    insertCall(
      db,
      time,
      {
        organizationId: ID.organization,
        projectId: ID.project,
        keyId,
        memberId,
        state: 'denied',
        statusCode: 403,
        errorCode: 'permission_denied',
        requestId: REQUEST,
        clientRequestId: 'my-own-1',
        clientAddress: '192.0.2.1',
      },
      decision,
    ),
  );
  return [id, idLike(id, 'dec')];
}

import { SIX_RULES } from './six-rules.ts';
import { MODEL } from './workload.ts';

interface KeyList {
  keys: { id: string; kind: string; createdBy: string; projectId: string }[];
}

function isKeyList(answer: unknown): answer is KeyList {
  return typeof answer === 'object' && answer !== null && 'keys' in answer && Array.isArray(answer.keys);
}

interface NewKey {
  key: { id: string; token: string };
}

function isNewKey(answer: unknown): answer is NewKey {
  return typeof answer === 'object' && answer !== null && 'key' in answer && typeof answer.key === 'object';
}

type Call = (path: string, body?: object) => Promise<unknown>;

const caller =
  (managementUrl: string, masterKey: string): Call =>
  async (path, body) => {
    const response = await fetch(`${managementUrl}/v1/master/${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${masterKey}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`/v1/master/${path} answered ${response.status}: ${await response.text()}`);
    return response.json();
  };

async function firstKey(call: Call): Promise<KeyList['keys'][number]> {
  const list = await call('keys');
  const key = isKeyList(list) ? list.keys.find(({ kind }) => kind === 'regular') : undefined;
  if (key === undefined) throw new Error('the gateway lists no regular key');
  return key;
}

async function addSixRules(call: Call, scope: string): Promise<void> {
  for (const rule of SIX_RULES) await call(`${scope}/iam`, rule);
}

/** Puts the six rules on the organization, on the gateway key that first run made, and on the member who owns it. */
export async function addRules(managementUrl: string, masterKey: string): Promise<void> {
  const call = caller(managementUrl, masterKey);
  const key = await firstKey(call);
  for (const scope of ['organization', `members/${key.createdBy}`, `keys/${key.id}`]) await addSixRules(call, scope);
}

/** A new key of the first one's project, with the six rules. */
async function newKey(call: Call, limits: object): Promise<NewKey['key']> {
  const { projectId } = await firstKey(call);
  const made = await call('keys', { projectId, ...limits });
  if (!isNewKey(made)) throw new Error('the gateway made no key');
  await addSixRules(call, `keys/${made.key.id}`);
  return made.key;
}

/** The secret of one more key like the first, with both limits, and room in them for any measurement. */
export async function addCappedKey(managementUrl: string, masterKey: string): Promise<string> {
  const limits = { usageLimit: '9000000', periodUsageLimit: '9000000' };
  const window = { periodUsageDurationValue: 1, periodUsageDurationUnit: 'month' };
  const { token } = await newKey(caller(managementUrl, masterKey), { ...limits, ...window });
  return token;
}

/** The secret of one more key like the first, whose calls a seventh rule denies. */
export async function addDeniedKey(managementUrl: string, masterKey: string): Promise<string> {
  const call = caller(managementUrl, masterKey);
  const { id, token } = await newKey(call, {});
  await call(`keys/${id}/iam`, { ruleType: 'deny_models', ruleValue: { models: [MODEL] } });
  return token;
}

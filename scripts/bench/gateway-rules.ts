import { SIX_RULES } from './six-rules.ts';

interface KeyList {
  keys: { id: string; kind: string; createdBy: string }[];
}

function isKeyList(answer: unknown): answer is KeyList {
  return typeof answer === 'object' && answer !== null && 'keys' in answer && Array.isArray(answer.keys);
}

/** Puts the six rules on the organization, on the gateway key that first run made, and on the member who owns it. */
export async function addRules(managementUrl: string, masterKey: string): Promise<void> {
  const call = async (path: string, body?: object): Promise<unknown> => {
    const response = await fetch(`${managementUrl}/v1/master/${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${masterKey}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`/v1/master/${path} answered ${response.status}: ${await response.text()}`);
    return response.json();
  };
  const list = await call('keys');
  const key = isKeyList(list) ? list.keys.find(({ kind }) => kind === 'regular') : undefined;
  if (key === undefined) throw new Error('the gateway lists no regular key');
  for (const scope of ['organization', `members/${key.createdBy}`, `keys/${key.id}`]) {
    for (const rule of SIX_RULES) await call(`${scope}/iam`, rule);
  }
}

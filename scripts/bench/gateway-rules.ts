import { CLIENT_IP, MODEL } from './workload.ts';

/** Six rules, all of which look at the call and let it pass. */
export const SIX_RULES = [
  { ruleType: 'allow_models', ruleValue: { models: [MODEL, 'gpt-5', 'claude-sonnet-5', 'gemini-3-pro', 'openai/*'] } },
  { ruleType: 'deny_models', ruleValue: { models: ['some-other-model', 'openai/gpt-3.5-turbo'] } },
  { ruleType: 'allow_providers', ruleValue: { providers: ['bench', 'openai', 'anthropic'] } },
  { ruleType: 'deny_providers', ruleValue: { providers: ['some-other-provider'] } },
  { ruleType: 'allow_pricing', ruleValue: { maxInputPrice: '10', maxOutputPrice: '30' } },
  { ruleType: 'allow_ip_cidrs', ruleValue: { ipCidrs: [`${CLIENT_IP}/32`, '10.0.0.0/8'] } },
] as const;

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

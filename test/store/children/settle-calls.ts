import { newId } from '../../../src/domain/id.ts';
import type { Bounds } from '../../../src/domain/limits.ts';
import { systemClock } from '../../../src/domain/time.ts';
import { createStore } from '../../../src/store/store.ts';

/** Opens and settles calls, 8 at a time, without end; prints the id of each one as soon as its settlement is acknowledged. */
const [path = '', organizationId = '', projectId = '', keyId = '', memberId = ''] = process.argv.slice(2);
const store = createStore({ path, clock: systemClock });

/** The key has no limit. */
const NOTHING: Bounds = { least: 0n, within: (amount) => ({ amount, maxOutputTokens: null }) };

async function settleOne(): Promise<void> {
  const call = {
    id: newId('call'),
    ...{ organizationId, projectId, keyId, memberId },
    action: 'chat',
    requestId: newId('req'),
    clientRequestId: null,
    clientAddress: null,
    tool: null,
    requestedModel: 'sandbox/echo',
    stream: false,
  };
  const decision = {
    id: newId('dec'),
    outcome: 'permit' as const,
    reasonJson: null,
    violationsJson: '[]',
    shadowJson: null,
    bundleDigest: 'bundle',
    dataDigest: 'data',
    dataText: '{}',
    ruleRevision: 0,
    inputJson: '{}',
  };
  const opened = await store.openCall(call, decision, NOTHING);
  await store.settleCall(opened, {
    state: 'settled',
    cost: 1n,
    costDetailsJson: null,
    promptTokens: 1,
    completionTokens: 1,
    reasoningTokens: 0,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    priceUnknown: false,
    usageEstimated: false,
    providerId: 'sandbox',
    modelId: 'echo',
    providerKeyId: null,
    attemptsJson: null,
    statusCode: 200,
    errorCode: null,
    tookMs: null,
    timesJson: null,
  });
  process.stdout.write(`${call.id}\n`);
}

await Promise.all(
  Array.from({ length: 8 }, async () => {
    for (;;) await settleOne();
  }),
);

import { LRUCache } from 'lru-cache';
import { ApiError } from '../domain/errors.ts';
import { isLimited } from '../domain/spend-limits.ts';
import type { FindWorstCase, OpenCall } from '../store/ledger/ledger.ts';
import type { CanRecord } from '../store/recording-check.ts';
import type { Store } from '../store/store.ts';
import type { KeyCredential } from '../store/tenants/key-credential.ts';
import { type Answer, type Question, received, sent } from './messages.ts';

/** Resolves when the writer has committed what was asked; from then on the store on this side sees what the writer saw. */
export type Ask = (question: Question) => Promise<Answer>;

/** Most keys of which it is remembered whether they have a limit. */
const MAX_KEYS = 10_000;

async function ask(writer: Ask, question: Question): Promise<Exclude<Answer, { kind: 'refused' }>> {
  const answer = await writer(question);
  if (answer.kind === 'refused') throw received(answer.error);
  return answer;
}

const unexpected = ({ kind }: Answer): Error => new Error(`The writer answered another question: ${kind}.`);

async function isDone(writer: Ask, question: Question): Promise<boolean> {
  const answer = await ask(writer, question);
  if (answer.kind !== 'done') throw unexpected(answer);
  return answer.done;
}

/** Whether the writer can record calls. */
export const remoteRecordingCheck =
  (writer: Ask): CanRecord =>
  () =>
    isDone(writer, { kind: 'can record' });

function worstCaseFor(find: FindWorstCase): Extract<Question, { kind: 'open' }>['worstCase'] {
  const worstCase = find();
  if (worstCase instanceof ApiError) return sent(worstCase);
  if (worstCase.of === undefined) throw new Error('A worst case of unknown bounds cannot cross to the writer.');
  return worstCase.of;
}

/**
 * The store of a worker: it reads on its own connection, and what concerns calls and money is asked of the one writer. Other writes
 * are rare, and made as another process makes them.
 */
export function createRemoteStore(local: Store, writer: Ask): Store {
  /** Of keys that were seen with a limit: their worst case goes along with the call. */
  const limited = new LRUCache<string, true>({ max: MAX_KEYS });
  const noted = async (found: Promise<KeyCredential | undefined>): Promise<KeyCredential | undefined> => {
    const key = await found;
    if (key !== undefined) {
      if (isLimited(key)) limited.set(key.keyId, true);
      else limited.delete(key.keyId);
    }
    return key;
  };

  return {
    ...local,
    findKeyByHash: (secretHash) => noted(local.findKeyByHash(secretHash)),
    findKeyById: (keyId) => noted(local.findKeyById(keyId)),
    async openCall(call, decision, findWorstCase, candidates = []) {
      const { id: callId, organizationId, projectId, memberId, keyId } = call;
      const who = candidates.map(({ providerId, modelId }) => ({ providerId, modelId }));
      const open = (worstCase: ReturnType<typeof worstCaseFor>) =>
        ask(writer, { kind: 'open', call, decision, worstCase, candidates: who });
      let answer = await open(limited.has(keyId) ? worstCaseFor(findWorstCase) : undefined);
      if (answer.kind === 'limited') answer = await open(worstCaseFor(findWorstCase));
      if (answer.kind !== 'opened') throw unexpected(answer);
      // As the writer saw them when it opened the call, or newer.
      const providers = await local.organizationProviders(organizationId);
      return { ...answer.opened, callId, organizationId, projectId, memberId, keyId, providers };
    },
    settleCall: ({ callId }, settlement) => isDone(writer, { kind: 'settle', callId, settlement }),
    async continueCall(call: OpenCall, charged) {
      const answer = await ask(writer, { kind: 'continue', callId: call.callId, charged });
      if (answer.kind === 'done') return answer.done;
      if (answer.kind !== 'held') throw unexpected(answer);
      call.held = answer.held;
      return true;
    },
    async recordFinishedCall(call, decision, outcome) {
      await isDone(writer, { kind: 'finish', call, decision, outcome });
    },
    recoverOpenCalls: () => Promise.reject(new Error('Only the writer recovers calls.')),
  };
}

import { worstCaseWithin } from '../core/price/worst-case.ts';
import { ApiError } from '../domain/errors.ts';
import type { FindWorstCase, OpenCall, Settlement } from '../store/ledger/ledger.ts';
import type { CanRecord } from '../store/recording-check.ts';
import type { Store } from '../store/store.ts';
import { type Answer, type Question, received, sent } from './messages.ts';

/** A limit applies to a call that was sent without its worst case. */
class WorstCaseMissing extends Error {
  override readonly name = 'WorstCaseMissing';
}

/** What is booked for a call whose worker has died: it counts as dispatched, like those of a crash, and costs what was held back. */
const lost = ({ held }: OpenCall): Settlement => ({
  state: 'settled',
  cost: held,
  priceUnknown: false,
  costDetailsJson: null,
  promptTokens: 0,
  completionTokens: 0,
  reasoningTokens: 0,
  cachedTokens: 0,
  cacheWriteTokens: 0,
  usageEstimated: true,
  providerId: null,
  modelId: null,
  providerKeyId: null,
  attemptsJson: null,
  statusCode: 500,
  errorCode: 'internal_error',
});

/** The open calls of one worker, which this thread books for it: it alone knows what is held back for them. */
export class WorkerCalls {
  readonly #store: Store;
  readonly #canRecord: CanRecord;
  readonly #open = new Map<string, OpenCall>();
  #isDead = false;

  constructor(store: Store, canRecord: CanRecord) {
    this.#store = store;
    this.#canRecord = canRecord;
  }

  async answer(question: Question): Promise<Answer> {
    try {
      return await this.#answer(question);
    } catch (error) {
      return error instanceof WorstCaseMissing ? { kind: 'limited' } : { kind: 'refused', error: sent(error) };
    }
  }

  /** The worker has died: what it left open is settled. @returns how many calls */
  async recover(): Promise<number> {
    this.#isDead = true;
    const calls = [...this.#open.values()];
    const booked = await Promise.all(calls.map((call) => this.#settle(call, lost(call))));
    return booked.filter(Boolean).length;
  }

  async #answer(question: Question): Promise<Answer> {
    switch (question.kind) {
      case 'open':
        return this.#openCall(question);
      case 'continue': {
        const call = this.#callOf(question.callId);
        if (!(await this.#store.continueCall(call, question.charged))) return { kind: 'done', done: false };
        return { kind: 'held', held: call.held };
      }
      case 'settle':
        return { kind: 'done', done: await this.#settle(this.#callOf(question.callId), question.settlement) };
      case 'finish':
        await this.#store.recordFinishedCall(question.call, question.decision, question.outcome);
        return { kind: 'done', done: true };
      case 'can record':
        return { kind: 'done', done: await this.#canRecord() };
    }
  }

  async #openCall({ call, decision, worstCase, candidates }: Extract<Question, { kind: 'open' }>): Promise<Answer> {
    const findWorstCase: FindWorstCase = () => {
      if (worstCase === undefined) throw new WorstCaseMissing();
      if ('bounds' in worstCase) return worstCaseWithin(worstCase);
      const refusal = received(worstCase);
      if (refusal instanceof ApiError) return refusal;
      throw refusal;
    };
    const opened = await this.#store.openCall(call, decision, findWorstCase, candidates);
    this.#open.set(opened.callId, opened);
    if (this.#isDead) await this.#settle(opened, lost(opened));
    const { number, origin, reservation, held, windows, ruleRevision } = opened;
    return { kind: 'opened', opened: { number, origin, reservation, held, windows, ruleRevision } };
  }

  async #settle(call: OpenCall, settlement: Settlement): Promise<boolean> {
    try {
      return await this.#store.settleCall(call, settlement);
    } finally {
      // What could not be booked is kept by the store, or left to the recovery at the next start.
      this.#open.delete(call.callId);
    }
  }

  #callOf(callId: string): OpenCall {
    const call = this.#open.get(callId);
    if (call === undefined) throw new Error(`The worker has no open call ${callId}.`);
    return call;
  }
}

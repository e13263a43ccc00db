import { ApiError } from '../../domain/errors.ts';
import { usdNumber } from '../../domain/money.ts';
import type { MetricTarget } from '../../metrics.ts';
import type { OpenCall, Settlement } from '../../store/ledger/ledger.ts';
import type { Store } from '../../store/store.ts';
import type { Telemetry } from '../../telemetry.ts';

/** What is remembered of an open call until it is settled. */
interface Begun {
  readonly action: string;
  readonly at: number;
}

const tokensOf = (settlement: Settlement) => {
  const { promptTokens, completionTokens, reasoningTokens, cachedTokens, cacheWriteTokens } = settlement;
  return {
    input: promptTokens - cachedTokens - cacheWriteTokens,
    cached_input: cachedTokens,
    cache_write_input: cacheWriteTokens,
    output: completionTokens - reasoningTokens,
    reasoning: reasoningTokens,
  };
};

/**
 * The store, telling telemetry of every call that has ended: once its row is committed, and never twice.
 * @param isCatalogued whether a mapping is of the catalogue, by provider and model; all others are the customers' own
 */
export function observedStore(
  store: Store,
  telemetry: Telemetry,
  isCatalogued: (providerId: string, modelId: string) => boolean,
): Store {
  const begun = new WeakMap<OpenCall, Begun>();
  const targetOf = ({ providerId, modelId }: Pick<Settlement, 'providerId' | 'modelId'>): MetricTarget | undefined =>
    providerId === null || modelId === null
      ? undefined
      : { providerId, modelId, custom: !isCatalogued(providerId, modelId) };

  return {
    ...store,
    async openCall(call, ...rest) {
      const { action } = call;
      const at = performance.now();
      try {
        const opened = await store.openCall(call, ...rest);
        begun.set(opened, { action, at });
        return opened;
      } catch (error) {
        // A refusal has its row; that the store could not do its work has none.
        if (error instanceof ApiError && error.status < 500) {
          telemetry.callFinished({ action, target: undefined, errorCode: error.code });
        }
        throw error;
      }
    },
    async settleCall(call, settlement) {
      const booked = await store.settleCall(call, settlement);
      const known = begun.get(call);
      if (booked && known !== undefined) {
        telemetry.callSettled({
          action: known.action,
          target: targetOf(settlement),
          errorCode: settlement.errorCode,
          durationMs: performance.now() - known.at,
          tokens: tokensOf(settlement),
          costUsd: usdNumber(settlement.cost),
        });
      }
      return booked;
    },
    async recordFinishedCall(call, decision, outcome) {
      await store.recordFinishedCall(call, decision, outcome);
      telemetry.callFinished({ action: call.action, target: targetOf(outcome), errorCode: outcome.errorCode });
    },
  };
}

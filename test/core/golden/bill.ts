import { type Cost, costOf } from '../../../src/core/cost.ts';
import { Produced } from '../../../src/core/provider-answer.ts';
import { formatUsd } from '../../../src/domain/limits.ts';
import type { Prices, PriceTier } from '../../../src/domain/model.ts';
import { NO_USAGE, type Usage } from '../../../src/domain/usage.ts';
import type { ChatRequest } from '../../../src/generated/types.ts';
import type { Adapter } from '../../../src/providers/wire/adapter.ts';
import { gathered, mappingOf, streamed } from '../../providers/answers.ts';

export interface Lists {
  readonly prices: Prices;
  readonly tiers?: readonly PriceTier[];
}

/** What a provider's answer is taken to have used, and what that costs; what is nothing is left out. */
export interface Bill {
  readonly usage: Partial<Usage>;
  /** In pico-dollars. A price of 1 USD per million tokens is 1,000,000 of them per token. */
  readonly parts: Partial<Cost>;
  /** In USD. */
  readonly total: string;
}

export const ASKED: ChatRequest = { model: 'm', messages: [{ role: 'user', content: 'Hi' }] };

export function billOf(usage: Usage, lists: Lists): Bill {
  const { total, ...parts } = costOf(usage, lists);
  return {
    usage: Object.fromEntries(Object.entries(usage).filter(([, count]) => count !== 0 && count !== false)),
    parts: Object.fromEntries(Object.entries(parts).filter(([, part]) => part !== 0n && part !== false)),
    total: formatUsd(total),
  };
}

/** The bill of a whole answer, read from the provider's JSON. */
export function wholeBill(adapter: Adapter, answer: object, lists: Lists, request = ASKED): Bill {
  const produced = new Produced();
  produced.addWhole(adapter.parseResponse(gathered(JSON.stringify(answer))));
  return billOf(produced.reportedUsage(request, mappingOf('p', lists)) ?? NO_USAGE, lists);
}

/** The bill of a stream, read from the provider's events. */
export async function streamBill(adapter: Adapter, lists: Lists, events: string): Promise<Bill> {
  const produced = new Produced();
  for await (const chunk of adapter.parseStream(streamed(events))) produced.addChunk(chunk);
  return billOf(produced.reportedUsage(ASKED, mappingOf('p', lists)) ?? NO_USAGE, lists);
}

/** The bill of generated images, read from the provider's JSON. */
export function imageBill(adapter: Adapter, answer: object, lists: Lists): Bill {
  const mapping = mappingOf('p', { ...lists, outputModalities: ['image'] });
  const request = { model: 'm', prompt: 'A door' };
  const made = adapter.images?.parseResponse(gathered(JSON.stringify(answer)), { request, mapping });
  return billOf(made?.usage ?? NO_USAGE, lists);
}

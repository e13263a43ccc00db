import type { Capability, Fact } from './overlay.ts';
import { type Charges, changed, type PriceList } from './price-list.ts';

/** What is known of a model at a provider, before it is written. */
export interface Known {
  readonly contextLength?: number | undefined;
  readonly maxOutput?: number | undefined;
  readonly minCacheableTokens?: number | undefined;
  readonly input: readonly string[];
  readonly output: readonly string[];
  readonly capabilities: ReadonlySet<Capability>;
  readonly efforts?: readonly string[] | undefined;
  readonly parameters: readonly string[];
  readonly stability: string;
  readonly deprecatedAt?: string | undefined;
  readonly deactivatedAt?: string | undefined;
  readonly free: boolean;
  readonly tokenizer?: string | undefined;
  readonly moderated?: boolean | undefined;
  readonly charges: Charges;
}

/** What is known with the facts that are about the mapping, the last of which wins. */
export function applyFacts(mappingId: string, known: Known, facts: readonly Fact[]): Known {
  const about = facts.filter((fact) => fact.about(mappingId));
  let result = known;
  for (const fact of about) result = applyFact(result, fact);
  // Multiples come last: they fill what no fact states, from the input price that holds in the end.
  for (const { says } of about) result = { ...result, charges: changed(result.charges, multiples(says.timesPrompt)) };
  return result;
}

function applyFact(known: Known, { says, date }: Fact): Known {
  const capabilities = new Set([...known.capabilities, ...says.can]);
  for (const capability of says.cannot) capabilities.delete(capability);
  return {
    contextLength: says.contextLength ?? known.contextLength,
    maxOutput: says.maxOutput ?? known.maxOutput,
    minCacheableTokens: says.minCacheableTokens ?? known.minCacheableTokens,
    input: says.input ?? known.input,
    output: says.output ?? known.output,
    capabilities,
    efforts: says.efforts ?? known.efforts,
    parameters: says.parameters ?? known.parameters,
    stability: says.stability ?? known.stability,
    deprecatedAt: says.deprecatedAt ?? known.deprecatedAt ?? announced(says, date),
    deactivatedAt: says.deactivatedAt ?? known.deactivatedAt,
    free: says.free ?? known.free,
    tokenizer: says.tokenizer ?? known.tokenizer,
    moderated: says.moderated ?? known.moderated,
    charges: chargesWith(known.charges, says),
  };
}

/** What is going to be shut down is deprecated: by the day on which that was entered at the latest. */
const announced = ({ deactivatedAt }: Fact['says'], date: string): string | undefined =>
  deactivatedAt === undefined ? undefined : `${date}T00:00:00Z`;

function chargesWith(known: Charges, says: Fact['says']): Charges {
  const stated = changed(known, (list) => without(new Map([...list, ...says.prices]), says.unpriced));
  if (says.tiers === undefined) return stated;
  // A tier says what it changes; the rest of its list is the base list.
  const tiers = says.tiers.map((tier) => ({ ...tier, prices: new Map([...stated.prices, ...tier.prices]) }));
  return { ...stated, tiers };
}

const without = (list: PriceList, names: readonly string[]): PriceList =>
  new Map([...list].filter(([name]) => !names.includes(name)));

/** Fills prices that are a multiple of the input price, in hundredths, rounded half up. */
const multiples =
  (times: Fact['says']['timesPrompt']) =>
  (list: PriceList): PriceList => {
    const prompt = list.get('prompt');
    if (prompt === undefined) return list;
    const filled = [...times].map(([name, hundredths]) => [name, (prompt * hundredths + 50n) / 100n] as const);
    return new Map([...filled, ...list]);
  };

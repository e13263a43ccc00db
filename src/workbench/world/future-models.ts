import { type Mapping, mappingNames, type Prices, TEXT_ONLY } from '../../domain/model.ts';

/** No rule can mean them but by `*`, `-*` and the like. */
const NAMES = { provider: '-a-provider-to-come', model: '-a-model-to-come' } as const;
const PICO_PER_USD = 1_000_000_000_000n;

/** At every kind of price: unknown, nothing, next to nothing, and more than any maximum. */
const PRICES: readonly Prices[] = [
  {},
  { prompt: 0n, completion: 0n },
  { prompt: 1n, completion: 1n },
  { prompt: 10n * PICO_PER_USD, completion: 10n * PICO_PER_USD },
];

/** What the catalogue may have one day: models that no rule names, of a provider that none names. */
export const FUTURE_MAPPINGS: readonly Mapping[] = PRICES.map((prices, index) => {
  const [providerId, modelId] = [NAMES.provider, `${NAMES.model}-${index}`];
  return {
    id: `${providerId}/${modelId}`,
    providerId,
    modelId,
    externalId: modelId,
    custom: false,
    names: mappingNames({ providerId, modelId, externalId: modelId }, []),
    providerNames: [providerId],
    prices,
    freeFlag: false,
    ...TEXT_ONLY,
  };
});

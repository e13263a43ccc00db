import { type Mapping, mappingNames, type Prices, TEXT_ONLY } from '../../domain/model.ts';
import type { CandidateAttribute } from '../../policy/input-document.ts';

/** No rule can mean them but by `*`, `-*` and the like. */
const NAMES = { provider: '-a-provider-to-come', model: '-a-model-to-come', tag: '-a-tag-to-come' } as const;
const PICO_PER_USD = 1_000_000_000_000n;

/** What may differ of them: one list for attributes that go together. */
type Variants = readonly Partial<Mapping>[];

const priced = (prices: Prices): Partial<Mapping> => ({ prices });

/** At every kind of price: unknown, nothing, next to nothing, and more than any maximum. */
const PRICES: Variants = [
  priced({}),
  priced({ prompt: 0n, completion: 0n }),
  priced({ prompt: 1n, completion: 1n }),
  priced({ prompt: 10n * PICO_PER_USD, completion: 10n * PICO_PER_USD }),
];

/** Where each attribute that rules may look at takes every kind of value. */
const VARIANTS: Readonly<Record<CandidateAttribute, Variants>> = {
  input_price: PRICES,
  output_price: PRICES,
  tags: [{ tags: [] }, { tags: [NAMES.tag] }],
};

const EVERY_VARIANT = [...new Set(Object.values(VARIANTS))].reduce<Variants>(
  (all, variants) => all.flatMap((one) => variants.map((other) => ({ ...one, ...other }))),
  [{}],
);

/** What the catalogue may have one day: models that no rule names, of a provider that none names. */
export const FUTURE_MAPPINGS: readonly Mapping[] = EVERY_VARIANT.map((variant, index) => {
  const [providerId, modelId] = [NAMES.provider, `${NAMES.model}-${index}`];
  return {
    id: `${providerId}/${modelId}`,
    providerId,
    modelId,
    externalId: modelId,
    custom: false,
    names: mappingNames({ providerId, modelId, externalId: modelId }, []),
    providerNames: [providerId],
    prices: {},
    freeFlag: false,
    ...TEXT_ONLY,
    ...variant,
  };
});

import { applyFacts, type Known } from './apply-facts.ts';
import type { TableModel } from './model-table.ts';
import { type Capability, idIn, type Overlay } from './overlay.ts';
import { GENAI_PRICES, type KnownModel, knownModel, pricedModel, TOKENLENS, tokenlensCharges } from './packages.ts';

/** A model at a provider with all that the packages and the overlay know of it. */
export interface Joined {
  readonly provider: string;
  readonly externalId: string;
  readonly model: TableModel;
  readonly known: Known;
  /** `YYYY-MM-DD`: when the model was released; where nobody says, when it entered the catalogue. */
  readonly created: string;
}

/** Every mapping of the table. @param dateOf the day whose prices of a provider hold, `YYYY-MM-DD` */
export function joinModels(
  table: readonly TableModel[],
  overlay: Overlay,
  dateOf: (provider: string) => string,
): Joined[] {
  return table.flatMap((model) => {
    const sibling = bestKnown(model, overlay);
    const created = model.created ?? sibling?.release_date ?? model.entered;
    if (created === undefined)
      throw new Error(`models.json must say when ${model.id} was created, or entered the catalogue`);
    return [...model.at].map(([provider, externalId]) => {
      const packages = fromPackages(provider, externalId, sibling, overlay, dateOf(provider));
      const known = applyFacts(`${provider}/${model.id}`, packages, overlay.facts);
      return { provider, externalId, model, created, known: settled(known) };
    });
  });
}

/** What a model can do is known from one provider for the others: its maker, or else the first by name. */
function bestKnown(model: TableModel, overlay: Overlay): KnownModel | undefined {
  const providers = [...model.at].sort(
    ([a], [b]) => Number(b === model.maker) - Number(a === model.maker) || (a < b ? -1 : 1),
  );
  return providers
    .map(([provider, externalId]) => knownModel(idIn(overlay, TOKENLENS, provider), externalId))
    .find((known) => known !== undefined);
}

function fromPackages(
  provider: string,
  externalId: string,
  sibling: KnownModel | undefined,
  overlay: Overlay,
  date: string,
): Known {
  const own = knownModel(idIn(overlay, TOKENLENS, provider), externalId);
  const priced = pricedModel(idIn(overlay, GENAI_PRICES, provider), externalId, date);
  const model = own ?? sibling;
  const capabilities = new Set<Capability>();
  if (model?.reasoning) capabilities.add('reasoning');
  if (model?.tool_call) capabilities.add('tools');
  const hasPrices = priced !== undefined && priced.charges.prices.size > 0;
  return {
    contextLength: own?.limit.context ?? priced?.contextLength,
    maxOutput: own?.limit.output,
    input: (model?.modalities.input ?? ['text']).map(modality),
    output: (model?.modalities.output ?? ['text']).map(modality),
    capabilities,
    parameters: [],
    stability: /preview|beta/.test(externalId) ? 'beta' : 'stable',
    deprecatedAt: priced?.deprecated ? deprecatedBy(overlay) : undefined,
    free: false,
    charges: hasPrices ? priced.charges : tokenlensCharges(own),
  };
}

const modality = (name: string): string => (name === 'pdf' ? 'file' : name);

/** The package says only that a model is deprecated: it was by the day of its data. */
function deprecatedBy(overlay: Overlay): string | undefined {
  const date = overlay.packages.get(GENAI_PRICES)?.date;
  return date === undefined ? undefined : `${date}T00:00:00Z`;
}

/** What facts say together: no prompt reaches a tier above the context, and what is deactivated was deprecated by then. */
function settled(known: Known): Known {
  const { contextLength = Number.POSITIVE_INFINITY, charges, deprecatedAt, deactivatedAt } = known;
  const tiers = charges.tiers.filter(({ abovePromptTokens }) => abovePromptTokens < contextLength);
  const isLate = deprecatedAt !== undefined && deactivatedAt !== undefined && deprecatedAt > deactivatedAt;
  return { ...known, charges: { ...charges, tiers }, deprecatedAt: isLate ? deactivatedAt : deprecatedAt };
}

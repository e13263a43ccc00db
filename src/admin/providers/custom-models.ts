import { checkShape } from '../../domain/check-shape.ts';
import { invalidField, invalidRequest, nullOr } from '../../domain/errors.ts';
import { newId } from '../../domain/id.ts';
import { formatUsd, formatUsdPerMillion, parseUsd, parseUsdPerMillion } from '../../domain/limits.ts';
import { type Prices, TEXT_ONLY } from '../../domain/model.ts';
import { formatTime } from '../../domain/time.ts';
import type {
  CustomModelAnswer,
  CustomModelList,
  CustomModelPatch,
  CustomModelPrices,
  CustomModelPricing,
  CustomModelRecord,
  Deletion,
} from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import type { Database } from '../../store/db/database.ts';
import type { PageRequest } from '../../store/db/records.ts';
import * as store from '../../store/providers/custom-provider-records.ts';
import { getCustomProvider, type NewCustomModel } from '../../store/providers/custom-provider-records.ts';
import { type Actor, checkManagesOrganization, recordChange } from '../audit/audit-trail.ts';
import { removeTagsOf } from './tag-sets.ts';

/** All that is said of a custom model, and may change. */
type CustomModelContent = Omit<NewCustomModel, 'id' | 'customProviderId' | 'model'>;

/** A model of which nothing is said but that it is there: it completes text. */
const DEFAULT_CONTENT: Omit<CustomModelContent, 'displayName'> = {
  prices: {},
  contextLength: null,
  maxOutput: null,
  streaming: TEXT_ONLY.streaming,
  vision: TEXT_ONLY.vision,
  tools: TEXT_ONLY.tools,
  parallelToolCalls: TEXT_ONLY.parallelToolCalls,
  reasoning: TEXT_ONLY.reasoning,
  jsonOutput: TEXT_ONLY.jsonOutput,
  structuredOutputs: TEXT_ONLY.structuredOutputs,
  inputModalities: TEXT_ONLY.inputModalities,
  outputModalities: TEXT_ONLY.outputModalities,
  supportedParameters: null,
  status: 'active',
};

/** The model's content after a change; 400 for an invalid price and for fields that contradict each other. */
function changedContent(before: CustomModelContent, patch: CustomModelPatch): CustomModelContent {
  const { contextLength = before.contextLength, maxOutput = before.maxOutput } = patch;
  const { supportedParameters = before.supportedParameters } = patch;
  return {
    displayName: patch.displayName ?? before.displayName,
    prices: changedPrices(before.prices, pricesIn(patch)),
    contextLength,
    maxOutput,
    streaming: patch.streaming ?? before.streaming,
    tools: patch.tools ?? before.tools,
    parallelToolCalls: patch.parallelToolCalls ?? before.parallelToolCalls,
    reasoning: patch.reasoning ?? before.reasoning,
    jsonOutput: patch.jsonOutput ?? before.jsonOutput,
    structuredOutputs: patch.structuredOutputs ?? before.structuredOutputs,
    ...visionOf(before, patch),
    outputModalities: [...new Set(patch.outputModalities ?? before.outputModalities)],
    supportedParameters,
    status: patch.status ?? before.status,
  };
}

/** `vision` and `image` among the input modalities say the same: whichever is not named follows the other. */
function visionOf(
  before: CustomModelContent,
  patch: CustomModelPatch,
): Pick<CustomModelContent, 'vision' | 'inputModalities'> {
  const vision = patch.vision ?? patch.inputModalities?.includes('image') ?? before.vision;
  const inputModalities = [...new Set(patch.inputModalities ?? impliedModalities(before, vision))];
  if (vision !== inputModalities.includes('image')) {
    throw invalidRequest('vision and image among inputModalities go together.', '/vision');
  }
  return { vision, inputModalities };
}

function impliedModalities(before: CustomModelContent, vision: boolean): readonly string[] {
  if (vision === before.vision) return before.inputModalities;
  if (vision) return [...before.inputModalities, 'image'];
  const others = before.inputModalities.filter((modality) => modality !== 'image');
  return others.length === 0 ? TEXT_ONLY.inputModalities : others;
}

export const PRICE_NAMES = [
  'prompt',
  'completion',
  'request',
  'image',
  'input_cache_read',
  'input_cache_write',
  'input_cache_write_1h',
  'internal_reasoning',
  'input_audio',
  'input_audio_cache_read',
  'output_audio',
  'input_image',
  'output_image',
  'per_image',
  'web_search',
] as const satisfies readonly (keyof Prices)[];

/** The fields of a body that state a token price per million, and the price that each stands for. */
const PER_MILLION = { inputPricePerMillion: 'prompt', outputPricePerMillion: 'completion' } as const;

/** The stated prices, those of tokens from whichever field has them. @throws ApiError 400 for one that both state */
function pricesIn(patch: CustomModelPatch): CustomModelPrices {
  const { pricing = {} } = patch;
  const prices = { ...pricing };
  for (const field of ['inputPricePerMillion', 'outputPricePerMillion'] as const) {
    const price = patch[field];
    if (price === undefined) continue;
    const name = PER_MILLION[field];
    if (pricing[name] !== undefined) {
      throw invalidField(`/${field}`, (wording) => `and ${wording.field(`/pricing/${name}`)} state the same price`);
    }
    prices[name] = price === null ? null : formatUsd(parseUsdPerMillion(price, `/${field}`));
  }
  return prices;
}

function changedPrices(before: Prices, given: CustomModelPrices): Prices {
  const prices: Partial<Record<keyof Prices, bigint>> = {};
  for (const name of PRICE_NAMES) {
    const text = given[name];
    const price = typeof text === 'string' ? parseUsd(text, `/pricing/${name}`) : undefined;
    const kept = text === undefined ? before[name] : price;
    if (kept !== undefined) prices[name] = kept;
  }
  return prices;
}

const perMillion = (price: bigint | undefined): string | null =>
  price === undefined ? null : formatUsdPerMillion(price);

/** The token prices in the unit of rules. */
const showPerMillion = ({ prompt, completion }: Prices) => ({
  inputPricePerMillion: perMillion(prompt),
  outputPricePerMillion: perMillion(completion),
});

/** Prices as admin JSON shows them: every name, null for what is unknown. */
function showPrices(prices: Prices): CustomModelPricing {
  const show = (price: bigint | undefined): string | null => (price === undefined ? null : formatUsd(price));
  return {
    prompt: show(prices.prompt),
    completion: show(prices.completion),
    request: show(prices.request),
    image: show(prices.image),
    input_cache_read: show(prices.input_cache_read),
    input_cache_write: show(prices.input_cache_write),
    input_cache_write_1h: show(prices.input_cache_write_1h),
    internal_reasoning: show(prices.internal_reasoning),
    input_audio: show(prices.input_audio),
    input_audio_cache_read: show(prices.input_audio_cache_read),
    output_audio: show(prices.output_audio),
    input_image: show(prices.input_image),
    output_image: show(prices.output_image),
    per_image: show(prices.per_image),
    web_search: show(prices.web_search),
  };
}

export const MAX_CUSTOM_MODELS = 500;

const TOKENS = nullOr('a whole number of tokens from 1 to 1000000000');

const EXPLANATIONS = [
  { at: /^\/model$/, must: 'must be 1 to 448 characters, each a letter, a digit or one of . _ : @ / -' },
  { at: /^\/displayName$/, must: 'must be a text of 1 to 256 characters' },
  { at: /^\/(contextLength|maxOutput)$/, must: TOKENS },
  {
    at: new RegExp(`^/pricing/(${PRICE_NAMES.join('|')})$`),
    must: nullOr('a price in USD: a plain decimal string such as "0.0000025", with at most 12 places, at most 9000000'),
  },
  {
    at: /^\/(inputPricePerMillion|outputPricePerMillion)$/,
    must: nullOr('a price in USD per million tokens: a plain decimal string such as "2.5", with at most 6 places'),
  },
];

const PATCH_EXPLANATIONS = [
  ...EXPLANATIONS.slice(1),
  { at: /^\/(model|customProviderId)$/, must: 'cannot be changed: requests and rules mean the model by it' },
];

/**
 * Adds a model to a custom provider. Shape and a model that is there already 400, role 403, unknown provider 404.
 * @param body as `CustomModelCreate`, unchecked. @param now epoch ms
 */
export function createCustomModel(db: Database, actor: Actor, body: unknown, now: number): CustomModelAnswer {
  const { customProviderId, model, ...fields } = checkShape(validator('CustomModelCreate'), body, EXPLANATIONS);
  const content = changedContent({ ...DEFAULT_CONTENT, displayName: model }, fields);
  const { organizationId } = actor;
  return db.transaction(() => {
    checkManagesOrganization(actor);
    const provider = getCustomProvider(db, organizationId, customProviderId);
    if (store.hasCustomModel(db, organizationId, { customProviderId, model })) {
      throw invalidRequest(`The custom provider ${provider.name} has a model "${model}" already.`, '/model');
    }
    if (store.countCustomModels(db, organizationId) >= MAX_CUSTOM_MODELS) {
      throw invalidRequest(`An organization has at most ${MAX_CUSTOM_MODELS} custom models.`);
    }
    const wanted = { id: newId('model'), customProviderId, model, ...content };
    const customModel = viewCustomModel(store.insertCustomModel(db, organizationId, wanted, now), provider.name);
    recordChange(db, actor, 'custom_model', 'create', { before: null, after: customModel }, now);
    return { customModel };
  });
}

interface CustomModelListRequest extends PageRequest {
  readonly customProviderId?: string | undefined;
}

/** A page of the organization's custom models, newest first; of one provider when it is named. 403 for developers. */
export function listCustomModels(db: Database, actor: Actor, request: CustomModelListRequest): CustomModelList {
  checkManagesOrganization(actor);
  const { organizationId } = actor;
  const { items, nextCursor } = store.listCustomModels(db, organizationId, request);
  const ids = new Set(items.map(({ customProviderId }) => customProviderId));
  const names = new Map([...ids].map((id) => [id, getCustomProvider(db, organizationId, id).name]));
  return {
    customModels: items.map((model) => viewCustomModel(model, names.get(model.customProviderId) ?? '')),
    nextCursor,
  };
}

/** One custom model; 404 when there is none, 403 for developers. */
export function getCustomModel(db: Database, actor: Actor, id: string): CustomModelAnswer {
  checkManagesOrganization(actor);
  return answer(db, store.getCustomModel(db, actor.organizationId, id));
}

/**
 * Changes what is said of a custom model; a price that is not named stays.
 * @param body as `CustomModelPatch`, unchecked. @param now epoch ms
 */
export function changeCustomModel(
  db: Database,
  actor: Actor,
  id: string,
  body: unknown,
  now: number,
): CustomModelAnswer {
  const patch = checkShape(validator('CustomModelPatch'), body, PATCH_EXPLANATIONS);
  return db.transaction(() => {
    checkManagesOrganization(actor);
    const present = store.getCustomModel(db, actor.organizationId, id);
    const { customProviderId, model } = present;
    const content: CustomModelContent = changedContent(present, patch);
    const changed = { id, customProviderId, model, ...content };
    const { customModel: before } = answer(db, present);
    const { customModel } = answer(db, store.replaceCustomModel(db, actor.organizationId, changed, now));
    recordChange(db, actor, 'custom_model', 'update', { before, after: customModel }, now);
    return { customModel };
  });
}

/** Deletes a custom model: no request finds it from the next one on. */
export function deleteCustomModel(db: Database, actor: Actor, id: string, now: number): Deletion {
  checkManagesOrganization(actor);
  return db.transaction(() => {
    const { customModel: before } = answer(db, store.getCustomModel(db, actor.organizationId, id));
    store.deleteCustomModel(db, actor.organizationId, id, now);
    removeTagsOf(db, actor, (target) => target === before.name, now);
    recordChange(db, actor, 'custom_model', 'delete', { before, after: null }, now);
    return { id, deleted: true };
  });
}

const answer = (db: Database, model: store.CustomModelRecord): CustomModelAnswer => ({
  customModel: viewCustomModel(model, getCustomProvider(db, model.organizationId, model.customProviderId).name),
});

/** A custom model as admin JSON shows it, with the name of its provider. */
export const viewCustomModel = (model: store.CustomModelRecord, provider: string): CustomModelRecord => ({
  id: model.id,
  createdAt: formatTime(model.createdAt),
  updatedAt: formatTime(model.updatedAt),
  customProviderId: model.customProviderId,
  model: model.model,
  name: `${provider}/${model.model}`,
  displayName: model.displayName,
  pricing: showPrices(model.prices),
  ...showPerMillion(model.prices),
  contextLength: model.contextLength,
  maxOutput: model.maxOutput,
  streaming: model.streaming,
  vision: model.vision,
  tools: model.tools,
  parallelToolCalls: model.parallelToolCalls,
  reasoning: model.reasoning,
  jsonOutput: model.jsonOutput,
  structuredOutputs: model.structuredOutputs,
  inputModalities: [...model.inputModalities],
  outputModalities: [...model.outputModalities],
  supportedParameters: model.supportedParameters === null ? null : [...model.supportedParameters],
  status: model.status,
});

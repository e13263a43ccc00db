import { checkShape } from '../../domain/check-shape.ts';
import { invalidRequest } from '../../domain/errors.ts';
import { newId } from '../../domain/id.ts';
import { formatTime } from '../../domain/time.ts';
import type { CustomModelAnswer, CustomModelList, CustomModelRecord, Deletion } from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import type { Database } from '../../store/db/database.ts';
import type { PageRequest } from '../../store/db/records.ts';
import * as store from '../../store/providers/custom-provider-records.ts';
import { getCustomProvider } from '../../store/providers/custom-provider-records.ts';
import { type Actor, checkManagesOrganization } from '../audit/actor.ts';
import { recordChange } from '../audit/audit-trail.ts';
import {
  type CustomModelContent,
  changedContent,
  NOTHING_SAID,
  PRICE_NAMES,
  showPerMillion,
  showPrices,
} from './custom-model-content.ts';
import { removeTagsOf } from './tag-sets.ts';

export const MAX_CUSTOM_MODELS = 500;

const TOKENS = 'must be null or a whole number of tokens from 1 to 1000000000';

const EXPLANATIONS = [
  { at: /^\/model$/, must: 'must be 1 to 448 characters, each a letter, a digit or one of . _ : @ / -' },
  { at: /^\/displayName$/, must: 'must be a text of 1 to 256 characters' },
  { at: /^\/(contextLength|maxOutput)$/, must: TOKENS },
  {
    at: new RegExp(`^/pricing/(${PRICE_NAMES.join('|')})$`),
    must: 'must be null or a price in USD: a plain decimal string such as "0.0000025", with at most 12 places, at most 9000000',
  },
  {
    at: /^\/(inputPricePerMillion|outputPricePerMillion)$/,
    must: 'must be null or a price in USD per million tokens: a plain decimal string such as "2.5", with at most 6 places',
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
  const content = changedContent({ ...NOTHING_SAID, displayName: model }, fields);
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

export interface CustomModelListRequest extends PageRequest {
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

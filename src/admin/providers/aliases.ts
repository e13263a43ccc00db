import type { Catalog } from '../../catalog/catalog.ts';
import { AUTO } from '../../core/auto.ts';
import { didYouMean, KnownNames } from '../../core/known-names.ts';
import { checkShape } from '../../domain/check-shape.ts';
import { invalidField, invalidRequest } from '../../domain/errors.ts';
import { newId } from '../../domain/id.ts';
import type { Alias } from '../../domain/provider.ts';
import { formatTime } from '../../domain/time.ts';
import type { AliasAnswer, AliasList, AliasRecord, Deletion } from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import type { Database } from '../../store/db/database.ts';
import type { PageRequest } from '../../store/db/records.ts';
import * as store from '../../store/providers/custom-names.ts';
import { readCustomNames } from '../../store/providers/custom-names.ts';
import { getProject } from '../../store/tenants/tenants.ts';
import { type Actor, checkManagesOrganization, recordChange } from '../audit/audit-trail.ts';

const MAX_ALIASES = 200;

const MODELS = { at: /^\/models\/\d+$/, must: 'must be the name of a model: letters, digits and . _ : @ / -' };
const WEIGHT = { at: /^\/weights\/\d+$/, must: 'must be a whole number from 0 to 1000' };
const EXPLANATIONS = [
  {
    at: /^\/name$/,
    must: 'must be 1 to 128 characters, each a letter, a digit or one of . _ : @ -, of which the first is a letter or a digit',
  },
  MODELS,
  WEIGHT,
];
const PATCH_EXPLANATIONS = [
  { at: /^\/(name|projectId)$/, must: 'cannot be changed: requests mean the alias by it' },
  MODELS,
  WEIGHT,
];

/** `auto` leaves the choice to the gateway; `custom` means all custom providers in rules. */
const RESERVED: readonly string[] = [AUTO, 'custom'];

/** The catalogue in which the names of an alias are looked up. */
export interface AliasWorld {
  readonly catalog: Pick<Catalog, 'mappings' | 'providers' | 'resolve' | 'retirement'>;
}

/** A write of aliases needs this apart from the database; `now` in epoch ms. */
export interface AliasWrite extends AliasWorld {
  readonly now: number;
}

/**
 * Makes an alias; requests mean it from the next one on. It opens nothing: rules judge its models. Shape, a reserved name, one that is
 * there already, models that nothing has or that are aliases 400; role 403; project 404. @param body as `AliasCreate`, unchecked
 */
export function createAlias(db: Database, actor: Actor, body: unknown, { now, catalog }: AliasWrite): AliasAnswer {
  const { name, projectId = null, models, weights = null } = checkShape(validator('AliasCreate'), body, EXPLANATIONS);
  const { organizationId } = actor;
  return db.transaction(() => {
    checkManagesOrganization(actor);
    if (projectId !== null) getProject(db, organizationId, projectId);
    if (RESERVED.includes(name))
      throw invalidRequest(`"${name}" cannot be an alias: it has a meaning already.`, '/name');
    const others = store.everyAlias(db, organizationId);
    checkNameIsFree(name, projectId, others);
    if (others.length >= MAX_ALIASES) throw invalidRequest(`An organization has at most ${MAX_ALIASES} aliases.`);
    const alias = { id: newId('alias'), projectId, name, models, weights };
    checkContent(db, organizationId, alias, others, catalog);
    const made = answer(db, store.insertAlias(db, organizationId, alias, now), catalog);
    recordChange(db, actor, 'alias', 'create', { before: null, after: made.alias }, now);
    return made;
  });
}

/** A page of the organization's aliases and those of its projects, newest first; of one project when it is named. */
export function listAliases(
  db: Database,
  { organizationId }: Actor,
  request: PageRequest & { readonly projectId?: string | undefined },
): AliasList {
  const { items, nextCursor } = store.listAliases(db, organizationId, request);
  return { aliases: items.map(view), nextCursor };
}

/** One alias, with its warnings as they stand now; 404 when there is none. */
export const getAlias = (db: Database, { organizationId }: Actor, id: string, { catalog }: AliasWorld): AliasAnswer =>
  answer(db, store.getAlias(db, organizationId, id), catalog);

/** Gives an alias other models or weights, from the next request on. @param body as `AliasPatch`, unchecked */
export function changeAlias(
  db: Database,
  actor: Actor,
  id: string,
  body: unknown,
  { now, catalog }: AliasWrite,
): AliasAnswer {
  const patch = checkShape(validator('AliasPatch'), body, PATCH_EXPLANATIONS);
  const { organizationId } = actor;
  return db.transaction(() => {
    checkManagesOrganization(actor);
    const present = store.getAlias(db, organizationId, id);
    const alias = { ...present, ...patch };
    const others = store.everyAlias(db, organizationId).filter((other) => other.id !== id);
    checkContent(db, organizationId, alias, others, catalog);
    const changed = answer(db, store.updateAlias(db, organizationId, id, alias, now), catalog);
    recordChange(db, actor, 'alias', 'update', { before: view(present), after: changed.alias }, now);
    return changed;
  });
}

/** Deletes an alias: from the next request on its name means what it would without it. @param now epoch ms */
export function deleteAlias(db: Database, actor: Actor, id: string, now: number): Deletion {
  return db.transaction(() => {
    checkManagesOrganization(actor);
    removeAlias(db, actor, store.getAlias(db, actor.organizationId, id), now);
    return { id, deleted: true };
  });
}

/** Deletes the aliases of a project that is deleted. @param now epoch ms */
export function removeAliasesOf(db: Database, actor: Actor, projectId: string, now: number): void {
  db.transaction(() => {
    const aliases = store.everyAlias(db, actor.organizationId);
    for (const alias of aliases.filter((each) => each.projectId === projectId)) removeAlias(db, actor, alias, now);
  });
}

function removeAlias(db: Database, actor: Actor, alias: store.AliasRecord, now: number): void {
  store.deleteAlias(db, actor.organizationId, alias.id);
  recordChange(db, actor, 'alias', 'delete', { before: view(alias), after: null }, now);
}

/** Whether some request could name both. */
const meet = (one: string | null, other: string | null): boolean => one === null || other === null || one === other;

/** An alias of an alias would leave open what is called; so a name that some alias lists is no name of one. */
function checkNameIsFree(name: string, projectId: string | null, others: readonly Alias[]): void {
  const same = others.find((other) => other.name === name && other.projectId === projectId);
  if (same !== undefined) throw invalidRequest(`There is an alias "${name}" already: change ${same.id}.`, '/name');
  const listing = others.find((other) => other.models.includes(name) && meet(other.projectId, projectId));
  if (listing === undefined) return;
  throw invalidRequest(
    `The alias "${listing.name}" lists "${name}", which would be an alias of an alias: name the model there with its provider first.`,
    '/name',
  );
}

function checkContent(
  db: Database,
  organizationId: string,
  { name, projectId, models, weights }: Pick<Alias, 'name' | 'projectId' | 'models' | 'weights'>,
  others: readonly Alias[],
  catalog: AliasWorld['catalog'],
): void {
  checkWeights(models, weights);
  const aliases = new Set([
    name,
    ...others.filter((other) => meet(other.projectId, projectId)).map((other) => other.name),
  ]);
  const custom = readCustomNames(db, organizationId);
  const [known, isKnown] = [new KnownNames(catalog, custom), knownBy(catalog, custom)];
  for (const [position, model] of models.entries()) {
    const param = `/models/${position}`;
    if (models.indexOf(model) !== position) throw invalidRequest(`"${model}" is listed twice.`, param);
    if (aliases.has(model)) {
      const pinned = catalog.resolve(model)?.[0]?.id;
      const instead = pinned === undefined ? '.' : `; \`${pinned}\` means the model.`;
      throw invalidRequest(`"${model}" is an alias, and an alias lists models only${instead}`, param);
    }
    if (!isKnown(model)) throw invalidRequest(`Nothing has the name "${model}"${nearestTo(model, known)}`, param);
    if (catalog.resolve(model)?.length === 0 && !custom.models.includes(model)) {
      const day = catalog.retirement(model);
      throw invalidRequest(`The model "${model}" is retired${day === undefined ? '' : ` since ${day}`}.`, param);
    }
  }
}

const nearestTo = (model: string, known: KnownNames): string =>
  model === AUTO
    ? ': `auto` leaves the choice to the gateway, and is no model.'
    : didYouMean(known.nearestModel(model));

/** As a request's `model` is read, without aliases: what is before the first `/` may be a custom provider. */
function knownBy(
  catalog: AliasWorld['catalog'],
  custom: { readonly providers: readonly string[]; readonly models: readonly string[] },
): (model: string) => boolean {
  const providers = new Set(custom.providers);
  const models = new Set(custom.models);
  return (model) =>
    providers.has(model.split('/', 1).join()) && model.includes('/')
      ? models.has(model)
      : catalog.resolve(model) !== undefined;
}

function checkWeights(models: readonly string[], weights: readonly number[] | null): void {
  if (weights === null) return;
  if (weights.length !== models.length) {
    throw invalidField('/weights', `must hold ${models.length} entries, one for each model`);
  }
  if (weights.every((weight) => weight === 0)) throw invalidRequest('One of the weights must be above 0.', '/weights');
}

/** Sentences about an alias that is accepted but may not mean what was meant. */
function warningsOf(
  db: Database,
  { organizationId, ...alias }: store.AliasRecord,
  catalog: AliasWorld['catalog'],
): string[] {
  const { name, projectId, models } = alias;
  const custom = readCustomNames(db, organizationId);
  const isKnown = knownBy(catalog, custom);
  const shadowed = catalog.resolve(name)?.[0];
  const others = store.everyAlias(db, organizationId).filter((other) => other.name === name && other.id !== alias.id);
  const providers = [...custom.providers, ...catalog.providers().map(({ id }) => id)];
  return [
    ...(shadowed === undefined
      ? []
      : [
          `"${name}" is also the name of a model in the catalogue: requests for it mean the alias from now on, and \`${shadowed.id}\` the model. Rules that name it judge the model, not the alias.`,
        ]),
    ...(providers.includes(name) ? [`"${name}" is also a provider: \`${name}/<model>\` does not mean the alias.`] : []),
    ...(projectId !== null && others.some((other) => other.projectId === null)
      ? [`In this project it takes the place of the organization's alias "${name}".`]
      : []),
    ...models
      .filter((model) => !isKnown(model))
      .map((model) => `Nothing has the name "${model}" any more: the alias leaves it out.`),
  ];
}

const answer = (db: Database, alias: store.AliasRecord, catalog: AliasWorld['catalog']): AliasAnswer => ({
  alias: view(alias),
  warnings: warningsOf(db, alias, catalog),
});

const view = ({ id, createdAt, updatedAt, name, projectId, models, weights }: store.AliasRecord): AliasRecord => ({
  id,
  createdAt: formatTime(createdAt),
  updatedAt: formatTime(updatedAt),
  name,
  projectId,
  models: [...models],
  weights: weights === null ? null : [...weights],
});

import type { Catalog } from '../catalog/catalog.ts';
import { type ApiError, invalidRequest, modelNotFound, unsupportedParameter } from '../domain/errors.ts';
import type { Mapping } from '../domain/model.ts';
import { SANDBOX } from '../domain/provider.ts';
import { nearest } from '../lib/text.ts';
import type { Provider } from '../providers/providers.ts';
import type { Unsupported } from '../providers/wire/adapter.ts';
import type { Principal } from './authorize.ts';
import type { CoreContext } from './core-context.ts';
import { type Action, OPERATIONS } from './operations.ts';
import { type AliasOrder, expanded, type FindReach, noModelServed, type Reach } from './reach.ts';
import type { ListCaller } from './reachable.ts';

/** The meaning of a request's `model`. */
export interface Resolved {
  /** Every active mapping that serves the action and whose provider has a credential for the project; at least one. */
  readonly candidates: readonly Mapping[];
  /** The provider that the request pinned (`provider/model`). */
  readonly requestedProvider: string | undefined;
  /** The order of an alias; undefined: the request named none, and the cheapest candidate comes first. */
  readonly order?: AliasOrder | undefined;
  /** Calls of the sandbox cost nothing. */
  readonly isSandboxFree: boolean;
}

/** Finds the part of a request that a provider cannot take; undefined: it takes all of it. */
export type FindUnsupported = (mapping: Mapping, provider: Provider) => Unsupported | undefined;

/** The organization's own meanings of names. */
export type OwnModels = Pick<Reach, 'custom' | 'isCustomProvider' | 'seen'>;

/** None of the model's providers can be called (policy/reference.md, "What is judged"); those that retired it would need none. */
export function noCredential(model: string, catalog: Catalog): ApiError {
  const active = new Set(catalog.resolve(model)?.map(({ id }) => id));
  const ended = catalog
    .mappings()
    .flatMap(({ id, names, providerId, deactivatedAt }) =>
      names.includes(model) && !active.has(id) && deactivatedAt !== undefined
        ? [`${providerId} since ${deactivatedAt.slice(0, 10)}`]
        : [],
    );
  return modelNotFound(
    ended.length === 0
      ? `No provider of the model \`${model}\` has a credential for this project.`
      : `The model \`${model}\` is retired at ${ended.join(', ')}, and no other provider of it has a credential for this project.`,
  );
}

/** A name that means nothing, with the nearest one that the caller may use. */
export const unknownModel = (model: string, known: Iterable<string>): ApiError => {
  const names = [...known];
  const meant = nearest(model, names) ?? nearest(model.slice(model.indexOf('/') + 1), names);
  return modelNotFound(
    `The model \`${model}\` does not exist.${meant === undefined ? '' : ` Did you mean \`${meant}\`?`}`,
  );
};

/** The names of what a caller may use for an action, aliases included. @throws PolicyFailure */
async function namesFor(
  { catalog, findReachable }: Pick<CoreContext, 'catalog' | 'findReachable'>,
  caller: ListCaller,
  action: Action,
): Promise<readonly string[]> {
  const { reach, mappings, usable } = await findReachable(caller);
  const isUseful = (mapping: Mapping): boolean =>
    reach.has(mapping) && serves(mapping, action, reach) && usable(mapping);
  const aliases = [...reach.aliases.values()].filter((alias) =>
    expanded(alias, (name) => meaningOf(name, catalog, reach)).mappings.some(isUseful),
  );
  return [...mappings.filter(isUseful).flatMap(({ names }) => names), ...aliases.map(({ name }) => name)];
}

/** All mappings of the model are deactivated. */
export function retired(model: string, catalog: Catalog): ApiError {
  const day = catalog.retirement(model);
  return modelNotFound(
    `The model \`${model}\` is retired${day === undefined ? '' : ` since ${day}`}: no provider serves it any more.`,
  );
}

/**
 * The meaning of a name: the part before the first `/` is looked up as custom provider, then as provider (src/domain/README.md,
 * "names").
 */
export function meaningOf(name: string, catalog: Catalog, reach: OwnModels): readonly Mapping[] | undefined {
  const slash = name.indexOf('/');
  if (slash === -1 || !reach.isCustomProvider(name.slice(0, slash))) return catalog.resolve(name)?.map(reach.seen);
  const own = reach.custom.filter(({ id }) => id === name);
  return own.length === 0 ? undefined : own;
}

/**
 * Names become candidates: the catalogue and the organization know the names, the reach knows which of them have a credential. A
 * provider that cannot take the request is no candidate.
 * @throws ApiError 404, or 400 for a model that is of no use to the action, or whose providers cannot take the request
 */
export async function resolve(
  app: Pick<CoreContext, 'catalog' | 'findReach' | 'findReachable'>,
  model: string,
  action: Action,
  caller: ListCaller,
  findUnsupported: FindUnsupported = () => undefined,
): Promise<Resolved> {
  const { catalog, findReach } = app;
  const reach = await findReach(caller.principal);
  // An alias is a caller's name for a model, never the operator's.
  const alias = OPERATIONS[action].modelParam === null ? undefined : reach.aliases.get(model);
  const order = alias && expanded(alias, (name) => meaningOf(name, catalog, reach));
  const mappings = order === undefined ? meaningOf(model, catalog, reach) : order.mappings;
  if (mappings === undefined) throw unknownModel(model, await namesFor(app, caller, action));
  if (mappings.length === 0) throw alias === undefined ? retired(model, catalog) : noModelServed(model);
  const callable = mappings.filter((mapping) => reach.has(mapping));
  if (callable.length === 0) throw noCredential(model, catalog);
  const serving = callable.filter((mapping) => serves(mapping, action, reach));
  if (serving.length === 0) throw doesNotServe(model, action);
  const candidates = takers(serving, reach, findUnsupported);
  const isSandboxFree = candidates.some(({ providerId }) => providerId === SANDBOX) && reach.isSandboxFree();
  return order === undefined
    ? { candidates, requestedProvider: pinnedProvider(model, candidates), isSandboxFree }
    : { candidates, requestedProvider: undefined, order, isSandboxFree };
}

/** The provider that a name `provider/model` pins. */
const pinnedProvider = (model: string, [first]: readonly Mapping[]): string | undefined =>
  first !== undefined && model.startsWith(`${first.providerId}/`) ? first.providerId : undefined;

/** The mappings whose provider takes the whole request. @throws ApiError 400 `unsupported_parameter` when none does */
export function takers(
  mappings: readonly Mapping[],
  reach: Pick<Reach, 'provider'>,
  findUnsupported: FindUnsupported,
): readonly Mapping[] {
  let refused: Unsupported | undefined;
  const taking = mappings.filter((mapping) => {
    const provider = reach.provider(mapping);
    const unsupported = provider && findUnsupported(mapping, provider);
    refused ??= unsupported;
    return unsupported === undefined;
  });
  if (taking.length === 0 && refused !== undefined) throw unsupportedParameter(refused.message, refused.param);
  return taking;
}

/** Whether a mapping can serve the action. All the ways to call it speak one wire format. */
export function serves(mapping: Mapping, action: Action, reach: Reach): boolean {
  const { gives, speaks } = OPERATIONS[action];
  if (!gives(mapping)) return false;
  return speaks === undefined || reach.targets(mapping).every(({ provider }) => speaks(provider.adapter));
}

/** A request to a model that cannot serve it. The one that moderates was not chosen by the caller. */
export const doesNotServe = (model: string, action: Action): ApiError =>
  invalidRequest(`The model \`${model}\` does not ${OPERATIONS[action].service}.`, OPERATIONS[action].modelParam);

/** The alias that answers chats which name no model. */
const DEFAULT_ALIAS = 'default';

/** Whether a chat request names no model. */
export const lacksModel = (body: unknown): body is object =>
  typeof body === 'object' && body !== null && !Array.isArray(body) && (Reflect.get(body, 'model') ?? null) === null;

/** A chat request that names no model, with the alias `default` where the caller's project or organization has one. */
export async function withDefaultModel(findReach: FindReach, principal: Principal, body: object): Promise<object> {
  const { aliases } = await findReach(principal);
  return aliases.has(DEFAULT_ALIAS) ? { ...body, model: DEFAULT_ALIAS } : body;
}

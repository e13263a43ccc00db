import type { Catalog } from '../../catalog/catalog.ts';
import { comparePrice } from '../../catalog/cheapest.ts';
import { permissionDenied } from '../../domain/errors.ts';
import { SANDBOX } from '../../domain/provider.ts';
import type { Clock } from '../../domain/time.ts';
import { isPast } from '../../domain/time.ts';
import type { FindReachable, ListCaller } from './reachable.ts';
import { serves } from './resolve.ts';

/** The models of requests that name none, or none that counts: for the whole installation, as long as the process runs. */
export interface UnnamedModels {
  /** Of an image request. */
  readonly image: string;
  /** Whatever a moderation names. */
  readonly moderation: string;
}

/** Those of the operator's settings; undefined where the operator leaves the choice to the gateway. */
export type NamedModels = Readonly<{ [Action in keyof UnnamedModels]: string | undefined }>;

/**
 * Those that the operator names; else the cheapest of a provider that the operator has a credential for, since the sandbox only stands in
 * for one; else the sandbox's. One that is announced to end is not taken. @param now epoch ms
 */
export function unnamedModels(
  { image, moderation }: NamedModels,
  { catalog, servedProviders }: UnnamedModelsDeps,
  now: number,
): UnnamedModels {
  const cheapest = (action: 'image' | 'moderation'): string | undefined =>
    catalog
      .mappings()
      .filter((mapping) => mapping.providerId !== SANDBOX && servedProviders.has(mapping.providerId))
      .filter((mapping) => !isPast(mapping.deprecatedAt, now) && !isPast(mapping.deactivatedAt, now))
      .filter(({ outputModalities }) => outputModalities.includes(action))
      .toSorted(comparePrice)[0]?.modelId;
  return {
    image: image ?? cheapest('image') ?? 'sandbox-image-plus',
    moderation: moderation ?? cheapest('moderation') ?? 'sandbox-moderation',
  };
}

/** What can be called by everyone. */
export interface UnnamedModelsDeps {
  readonly catalog: Pick<Catalog, 'mappings'>;
  readonly servedProviders: ReadonlySet<string>;
}

export interface FindImageModelDeps {
  readonly findReachable: FindReachable;
  readonly clock: Clock;
}

/**
 * The cheapest image model that a caller can use and that takes an aspect ratio, as `provider/model`; the sandbox's only where
 * there is no other. It only chooses: the decision follows. @throws ApiError 403 where there is none, PolicyFailure
 */
export async function findImageModel(deps: FindImageModelDeps, caller: ListCaller): Promise<string> {
  const { reach, mappings, usable } = await deps.findReachable(caller);
  const now = deps.clock.now();
  const fitting = mappings.filter(
    (mapping) =>
      !isPast(mapping.deactivatedAt, now) &&
      serves(mapping, 'image', reach) &&
      reach.provider(mapping)?.adapter.images?.takesAspectRatio(mapping) === true &&
      usable(mapping),
  );
  const others = fitting.filter(({ providerId }) => providerId !== SANDBOX);
  const [cheapest] = (others.length > 0 ? others : fitting).toSorted(comparePrice);
  if (cheapest === undefined)
    throw permissionDenied('Access denied: this key can use no image model that takes an aspect ratio.');
  return cheapest.id;
}

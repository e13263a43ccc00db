import { comparePrice } from '../../catalog/cheapest.ts';
import { permissionDenied } from '../../domain/errors.ts';
import type { Clock } from '../../domain/time.ts';
import { isPast } from '../../domain/time.ts';
import type { FindReachable, ListCaller } from './reachable.ts';
import { serves } from './resolve.ts';

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
  const others = fitting.filter(({ providerId }) => providerId !== 'sandbox');
  const [cheapest] = (others.length > 0 ? others : fitting).toSorted(comparePrice);
  if (cheapest === undefined)
    throw permissionDenied('Access denied: this key can use no image model that takes an aspect ratio.');
  return cheapest.id;
}

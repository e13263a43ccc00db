import type { Mapping } from '../../domain/model.ts';
import type { Clock } from '../../domain/time.ts';
import type { ChatRequest } from '../../generated/types.ts';
import { choicesFor, choose, nothingFits } from '../models/auto-choices.ts';
import type { FindReachable, ListCaller } from '../models/reachable.ts';
import { takers } from '../models/resolve.ts';
import { unsupportedIn } from './chat-exchange.ts';

export interface ChooseAutoDeps {
  readonly findReachable: FindReachable;
  readonly clock: Clock;
}

/**
 * The candidates of `auto`: the three cheapest that fit the request and are permitted; where none is permitted, the 64 cheapest
 * that fit, so that the decision can say why (src/core/README.md, "lists"). It only chooses: the decision follows.
 * @throws ApiError 404 when nothing fits, PolicyFailure
 */
export async function chooseAuto(
  { findReachable, clock }: ChooseAutoDeps,
  request: ChatRequest,
  caller: ListCaller,
): Promise<readonly Mapping[]> {
  const { reach, mappings, usable } = await findReachable(caller);
  const fitting = choicesFor(request, mappings, clock.now());
  if (fitting.length === 0) throw nothingFits();
  return choose(takers(fitting, reach, unsupportedIn(request)), usable);
}

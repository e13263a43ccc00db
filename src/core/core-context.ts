import type { Catalog } from '../catalog/catalog.ts';
import type { Clock } from '../domain/time.ts';
import type { Transport } from '../net/transport.ts';
import type { Pdp } from '../policy/pdp.ts';
import type { TokenEstimator } from '../providers/tokens/token-estimate.ts';
import type { Store } from '../store/store.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import type { Documents } from './authorize.ts';
import type { Rates } from './caller.ts';
import type { ResponseCache } from './chat-answer.ts';
import type { FindReach, Health } from './reach.ts';
import type { FindReachable } from './reachable.ts';
import type { Answers } from './target-exchange.ts';

/** The parts of the process that a call uses. `src/assembly.ts` makes them, once; the doors' `RequestContext` adds their own. */
export interface CoreContext {
  readonly store: Store;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly catalog: Catalog;
  /** The policy in force. */
  readonly pdp: () => Pdp;
  readonly documents: Documents;
  readonly rates: Rates;
  readonly findReach: FindReach;
  readonly findReachable: FindReachable;
  readonly health: Health;
  readonly transport: Transport;
  readonly answers: Answers;
  readonly estimator: TokenEstimator;
  readonly cache: ResponseCache;
  /** Milliseconds for a call as a whole, failover included. */
  readonly totalTimeoutMs: number;
  /** Most output tokens for a key with a limit if neither the request nor the model states one. */
  readonly defaultMaxOutputTokens: number;
  /** Fewest output tokens to which a limit may shorten an answer. */
  readonly minOutputTokens: number;
  /** Model of an image request that names none. */
  readonly defaultImageModel: string;
  /** Model of every moderation, whatever the request names. */
  readonly moderationModel: string;
}

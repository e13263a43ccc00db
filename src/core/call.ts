import { formatUsd, type Reservation, usdNumber } from '../domain/limits.ts';
import type { Mapping, Prices } from '../domain/model.ts';
import { SANDBOX } from '../domain/provider.ts';
import { NO_USAGE, storedTokens, sumUsage, type Usage } from '../domain/usage.ts';
import type {
  CallMetadata,
  ChatRequest,
  PolicyFacts,
  PolicyInput,
  PolicyTime,
  RoutingAttempt,
} from '../generated/types.ts';
import type { AttemptCause } from '../providers/wire/upstream-error.ts';
import type { OpenCall, Settlement } from '../store/ledger/ledger.ts';
import type { Store } from '../store/store.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import { type CallContext, type Permitted, type Principal, toApiError } from './authorize.ts';
import type { Rates } from './caller.ts';
import { AMOUNTS, type Charge, type Cost, costOf, withCharges } from './cost.ts';
import { boundOf, type Demand } from './operations.ts';
import type { AliasOrder, Target } from './reach.ts';
import { type CallBounds, mostOf, type OutputLimit } from './worst-case.ts';

/** The parts of the process in which a call leaves its row, its figures and its tokens. */
interface CallDeps {
  readonly store: Store;
  readonly telemetry: Telemetry;
  readonly rates: Rates;
}

/** The request that came in, and its caller. */
export interface CallFacts {
  readonly principal: Principal;
  readonly context: CallContext;
  readonly action: PolicyInput['action'];
  readonly requestedModel: string;
  /** The provider that the request pinned (`provider/model`). */
  readonly requestedProvider: string | undefined;
  /** The order of the alias that was asked for; undefined: none was, and the cheapest candidate comes first. */
  readonly order?: AliasOrder | undefined;
  /** Calls of the sandbox cost nothing, since another provider has a credential. */
  readonly isSandboxFree: boolean;
  readonly stream: boolean;
}

/** No price of the sandbox is left unknown by these. */
const NOTHING: Prices = { prompt: 0n, completion: 0n, per_image: 0n, web_search: 0n };

/** A candidate with the prices that a call pays, which rules do not see. */
export function charged(mapping: Mapping, { isSandboxFree }: Pick<CallFacts, 'isSandboxFree'>): Mapping {
  if (!isSandboxFree || mapping.providerId !== SANDBOX) return mapping;
  const { tiers: _, ...rest } = mapping;
  return { ...rest, prices: NOTHING };
}

/** The end of a call's last attempt. */
interface Outcome {
  readonly statusCode: number;
  readonly errorCode: string | null;
  /** The target that is paid; undefined: nobody is. */
  readonly target?: Target | undefined;
  /** Default: nothing. */
  readonly usage?: Usage | undefined;
  /** Undefined when nothing was produced. */
  readonly cost?: Cost | undefined;
}

/** The duration of a call, in milliseconds. */
export type CallTimes = Pick<Settlement, 'tookMs' | 'timesJson'>;

/** Results of `openCall`. */
export interface Opening {
  readonly permitted: Permitted;
  readonly opened: OpenCall;
  /** By `performance.now()`. */
  readonly startedAt: number;
  readonly bounds: CallBounds;
  /** The prompt that a provider has read by the time it answers: an estimate, without any part of an answer. */
  promptUsage(mapping: Mapping): Usage | Promise<Usage>;
}

/**
 * An open call: its row is committed, so it may be dispatched, and it must be settled, once. Each of its ends (`settle`, `fail`,
 * `breakOff`) resolves when the settlement is committed; the answer must wait for it.
 */
export class Call {
  readonly facts: CallFacts;
  readonly permitted: Permitted;
  readonly opened: OpenCall;
  readonly promptUsage: Opening['promptUsage'];
  /** In order. Of those that failed, `charges` has the ones that are paid for. */
  readonly attempts: RoutingAttempt[] = [];
  readonly charges: Charge[] = [];
  /** The target of the last attempt; undefined: nothing was sent to any provider. */
  target: Target | undefined;
  readonly #deps: CallDeps;
  readonly #bounds: CallBounds;
  readonly #startedAt: number;
  /** Why attempts failed, by their place; undefined: none has. The caller does not see it. */
  #causes: (AttemptCause | undefined)[] | undefined;
  /** When the last attempt began, by `performance.now()`; undefined: there was none. */
  #attemptBeganAt: number | undefined;
  /** When it ended; undefined while it runs. */
  #attemptEndedAt: number | undefined;
  /** The times of those before it, as `timesOf` takes them. */
  #earlierTimes = '';
  #firstTokenAt: number | undefined;

  constructor(deps: CallDeps, facts: CallFacts, opening: Opening) {
    this.#deps = deps;
    this.facts = facts;
    this.permitted = opening.permitted;
    this.opened = opening.opened;
    this.#bounds = opening.bounds;
    this.promptUsage = opening.promptUsage;
    this.#startedAt = opening.startedAt;
  }

  get id(): string {
    return this.opened.callId;
  }

  /** The output limit of a chat at this mapping; undefined where the key has no limit. */
  outputLimit(mapping: Mapping): OutputLimit | undefined {
    const { reservation } = this.opened;
    return reservation === undefined ? undefined : this.#bounds.outputLimit(mapping, reservation);
  }

  /** The cost of the attempts that failed, in pico-dollars. */
  get charged(): bigint {
    return this.charges.reduce((sum, { cost }) => sum + amountOf(cost, this.opened.reservation), 0n);
  }

  /** The cost of a usage at one of the call's candidates. */
  costOf(usage: Usage, mapping: Mapping): Cost {
    return costOf(usage, charged(mapping, this.facts));
  }

  attemptBegins(): void {
    this.#earlierTimes = this.#attemptTimes();
    this.#attemptBeganAt = performance.now();
    this.#attemptEndedAt = undefined;
  }

  /** The last attempt is over: its answer is whole, or it has failed. Later news of its end change nothing. */
  attemptEnds(): void {
    this.#attemptEndedAt ??= performance.now();
  }

  /** The times of all attempts, the last of which is over. */
  #attemptTimes(): string {
    const began = this.#attemptBeganAt;
    const ended = this.#attemptEndedAt;
    if (began === undefined || ended === undefined) return this.#earlierTimes;
    return `${this.#earlierTimes},${Math.round(began - this.facts.context.arrivedAt)},${Math.round(ended - began)}`;
  }

  attemptFailed(place: number, cause: AttemptCause): void {
    this.#causes ??= [];
    this.#causes[place] = cause;
  }

  /** A stream has begun to say something. */
  firstTokenCame(): void {
    this.#firstTokenAt = performance.now();
  }

  /** Ends a call that its target served, or whose caller left while it did. Returns the cost of all attempts. */
  async settle(usage: Usage, statusCode = 200, errorCode: string | null = null): Promise<Cost> {
    if (this.target === undefined) throw new Error('a call that nobody served cannot be settled as served');
    const cost = this.costOf(usage, this.target.mapping);
    await this.#book('settled', { statusCode, errorCode, target: this.target, usage, cost });
    return withCharges(cost, this.charges);
  }

  /**
   * Ends a call that nobody served: at the cost of its attempts, or released where nothing was sent to a provider. Returns the
   * error for the caller.
   */
  async fail(error: unknown): Promise<unknown> {
    const target = this.charges.length === 0 ? undefined : this.target;
    await this.#book(this.target === undefined ? 'released' : 'settled', { ...this.#codes(error), target });
    return error;
  }

  /**
   * Ends a call whose stream broke. Returns the error for the caller.
   * @param usage what is charged for the stream; undefined: nothing
   */
  async breakOff(error: unknown, usage: Usage | undefined): Promise<unknown> {
    const { target } = this;
    const cost = usage === undefined || target === undefined ? undefined : this.costOf(usage, target.mapping);
    await this.#book('settled', { ...this.#codes(error), target, usage, cost });
    return error;
  }

  /** Counted from the request's arrival. */
  #times(): CallTimes {
    this.attemptEnds();
    return timesOf(this.facts.context, this.#attemptTimes(), this.#firstTokenAt);
  }

  /** The status and code of a failure's row; 499 when the caller left, who gets no answer. */
  #codes(error: unknown): Pick<Outcome, 'statusCode' | 'errorCode'> {
    if (this.facts.context.signal.aborted) return { statusCode: 499, errorCode: 'client_closed_request' };
    const { status, code } = toApiError(error);
    return { statusCode: status, errorCode: code };
  }

  async #book(state: Settlement['state'], outcome: Outcome): Promise<void> {
    const { store, telemetry, rates } = this.#deps;
    const booked = this.#settlement(state, outcome);
    rates.spend(this.facts.principal, booked.promptTokens + booked.completionTokens);
    // False: it was settled before, by a start after a crash.
    if (!(await store.settleCall(this.opened, booked))) return;
    this.facts.context.onEnd(outcome.target?.mapping, booked.cost);
    telemetry.callSettled({
      action: this.facts.action,
      target: outcome.target?.mapping,
      errorCode: outcome.errorCode,
      durationMs: performance.now() - this.#startedAt,
      tokens: tokensOf(booked),
      costUsd: usdNumber(booked.cost),
    });
  }

  /** The entry for the ledger: all attempts together, at the target that is paid. */
  #settlement(state: Settlement['state'], outcome: Outcome): Settlement {
    const { target, statusCode, errorCode } = outcome;
    const { reservation } = this.opened;
    const [usage, cost] = this.#whole(outcome);
    const last = outcome.cost === undefined ? 0n : amountOf(outcome.cost, reservation);
    return {
      state,
      cost: this.charged + last,
      priceUnknown: cost !== undefined && (cost.unknownPrice ? reservation === undefined : cost.unpricedSearch),
      costDetailsJson: cost === undefined ? null : costDetailsJson(cost),
      ...storedTokens(usage),
      usageEstimated: usage.estimated,
      providerId: target?.mapping.providerId ?? null,
      modelId: target?.mapping.modelId ?? null,
      providerKeyId: target?.credential.providerKeyId ?? null,
      attemptsJson: this.#attemptsJson(),
      statusCode,
      errorCode,
      ...this.#times(),
    };
  }

  /** Usage and cost of the last attempt and of those before it. */
  #whole({ usage = NO_USAGE, cost }: Outcome): [usage: Usage, cost: Cost | undefined] {
    const [first, ...others] = this.charges;
    if (first === undefined) return [usage, cost];
    const all = sumUsage([usage, ...this.charges.map((charge) => charge.usage)]);
    return [all, cost === undefined ? withCharges(first.cost, others) : withCharges(cost, this.charges)];
  }

  /** As `metadata.routing` has them, and why they failed. */
  #attemptsJson(): string | null {
    const { attempts } = this;
    const causes = this.#causes;
    if (attempts.length === 0) return null;
    if (causes === undefined) return JSON.stringify(attempts);
    return JSON.stringify(
      attempts.map((attempt, place) => {
        const cause = causes[place];
        return cause === undefined ? attempt : { ...attempt, cause };
      }),
    );
  }
}

/**
 * The amount booked for an attempt. Where its price is unknown (for example, pictures are charged by tokens that the provider
 * did not report), a call with a limit pays its reservation: the limit could not be kept if they were free.
 */
const amountOf = ({ total, unknownPrice }: Cost, reservation: Reservation | undefined): bigint =>
  unknownPrice && reservation !== undefined ? reservation.amount : total;

/** The parts that are not nothing, as decimal strings in USD. */
function costDetailsJson(cost: Cost): string {
  const parts: Record<string, string> = {};
  for (const name of AMOUNTS) if (cost[name] > 0n) parts[name] = formatUsd(cost[name]);
  return JSON.stringify(parts);
}

/** The times of a call that ends now. @param attempts of each, after a comma: when it began, and how long it took */
export function timesOf(
  { arrivedAt, receivingMs }: Pick<CallContext, 'arrivedAt' | 'receivingMs'>,
  attempts = '',
  firstTokenAt?: number,
): CallTimes {
  const firstTokenMs = firstTokenAt === undefined ? null : Math.round(firstTokenAt - arrivedAt);
  return {
    tookMs: Math.round(performance.now() - arrivedAt),
    timesJson: `[${Math.round(receivingMs)},${firstTokenMs}${attempts}]`,
  };
}

/** For the metrics: each token once. */
function tokensOf(booked: Settlement) {
  const { promptTokens, completionTokens, reasoningTokens, cachedTokens, cacheWriteTokens } = booked;
  return {
    input: promptTokens - cachedTokens - cacheWriteTokens,
    cached_input: cachedTokens,
    cache_write_input: cacheWriteTokens,
    output: completionTokens - reasoningTokens,
    reasoning: reasoningTokens,
  };
}

/** The answer's `metadata`, exactly as the specification and src/core/README.md, "metadata.routing", have it. */
export const callMetadata = (
  { id, facts }: Pick<Call, 'id' | 'facts'>,
  mapping: Mapping,
  upstreamModel: string | undefined,
  routing: readonly RoutingAttempt[],
  cached = false,
): CallMetadata => ({
  request_id: facts.context.requestId,
  requested_model: facts.requestedModel,
  ...(facts.requestedProvider === undefined ? {} : { requested_provider: facts.requestedProvider }),
  used_model: mapping.modelId,
  used_provider: mapping.providerId,
  used_region: mapping.region ?? 'global',
  underlying_used_model: upstreamModel ?? mapping.externalId,
  log_id: id,
  organization_id: facts.principal.organizationId,
  project_id: facts.principal.projectId,
  discount: 0,
  cached,
  routing: [...routing],
});

/** The demand of a request, and the tools that it offers. */
export interface RequestContent {
  readonly demand: Demand;
  /** Names of the functions that the model may call. */
  readonly toolNames: readonly string[];
}

/** Names of the functions and custom tools that a chat offers to the model. */
export const toolNames = ({ tools, functions }: ChatRequest): string[] => [
  ...(tools ?? []).flatMap(({ function: offered, custom }) => [offered?.name ?? [], custom?.name ?? []].flat()),
  ...(functions ?? []).map(({ name }) => name),
];

/** The facts of the request itself. */
export type RequestFacts = Omit<PolicyFacts, 'key_tags'>;

/** The facts of a request for a policy that takes facts (`schemas/policy/input.json`). @param now epoch ms */
export function requestFacts(
  now: number,
  { context, stream }: CallFacts,
  { demand, toolNames }: RequestContent,
  candidates: readonly Mapping[],
): RequestFacts {
  return {
    time: policyTime(now),
    door: context.tool === undefined ? 'rest' : 'mcp',
    stream,
    text_bytes: demand.textTokens,
    modalities: [...(demand.hasAudio ? (['audio'] as const) : []), ...(demand.hasPictures ? (['image'] as const) : [])],
    tool_names: [...toolNames],
    worst_case_cost: worstCases(candidates, demand),
    meta: { ...context.findMeta?.() },
  };
}

/** Pico-dollars in a millionth of a dollar. */
const MICRO = 1_000_000n;

/** By candidate id, in millionths of a US dollar, rounded up; one whose price is unknown is missing. */
export const worstCases = (candidates: readonly Mapping[], demand: Demand): Record<string, number> =>
  Object.fromEntries(candidates.flatMap((mapping) => worstCaseAt(mapping, demand)));

function worstCaseAt(mapping: Mapping, demand: Demand): [id: string, microDollars: number][] {
  const bound = boundOf(mapping, demand);
  if (bound === undefined) return [];
  return [[mapping.id, Number((mostOf(bound) + MICRO - 1n) / MICRO)]];
}

const WEEKDAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'] as const;

/** A moment in the parts that Rego in WebAssembly cannot take it apart into. @param now epoch ms */
export function policyTime(now: number): PolicyTime {
  const moment = new Date(now);
  return {
    unix: Math.floor(now / 1000),
    date: moment.toISOString().slice(0, 10),
    weekday: WEEKDAYS[moment.getUTCDay()] ?? 'sunday',
    hour: moment.getUTCHours(),
    minute: moment.getUTCMinutes(),
  };
}

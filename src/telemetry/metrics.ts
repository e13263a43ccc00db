import {
  Counter,
  type CounterConfiguration,
  collectDefaultMetrics,
  Gauge,
  type GaugeConfiguration,
  Histogram,
  Registry,
} from 'prom-client';
import type { LimitedEndpoint } from '../domain/limits.ts';
import type { Mapping } from '../domain/model.ts';
import { Tally } from '../lib/collections.ts';

/** A model at a provider. Those of a custom provider bear names of a customer's own: they all count as `custom`. */
export type MetricTarget = Pick<Mapping, 'providerId' | 'modelId' | 'custom'>;

/** A call that has ended, with its row committed. */
interface EndedCall {
  readonly action: string;
  /** Undefined when nobody answered. */
  readonly target: MetricTarget | undefined;
  readonly errorCode: string | null;
}

const TOKEN_TYPES = ['input', 'cached_input', 'cache_write_input', 'output', 'reasoning'] as const;

/** Result of a dispatched call. */
interface SettledCall extends EndedCall {
  /** Milliseconds from its opening. */
  readonly durationMs: number;
  /** Each token once: the types do not overlap. */
  readonly tokens: Readonly<Record<(typeof TOKEN_TYPES)[number], number>>;
  readonly costUsd: number;
}

/** Decisions that name a report rule in their shadow. */
interface ReportedRule {
  readonly ruleId: string;
  readonly wouldDeny: number;
  readonly wouldAllow: number;
  /** When the last of them was made, in epoch ms. */
  readonly lastSeenAt: number;
}

/** Rules that have labels of their own; those that come later are `other`. */
const MAX_RULES = 500;

/** One of the two limits of a budget. */
export interface WatchedBudget {
  readonly labels: { readonly scope: string; readonly id: string; readonly limit: 'all_time' | 'recurring' };
  readonly limitUsd: number;
  /** Amount spent; for a recurring limit, in the current window. */
  readonly spentUsd: number;
}

/** The product's version and current state, read when someone looks. */
interface ProductState {
  readonly version: string;
  /** Commit of the checkout or image: the first seven digits, or `unknown`. */
  readonly commit: string;
  /** Number of the newest migration. */
  readonly schema: number;
  /** `YYYY-MM-DD`. */
  readonly catalogDate: string;
  /** SHA-256 of the compiled policy in force, hex. */
  bundleDigest(): string;
  /** Epoch ms of its activation, and of the last look for another; undefined: there was none. */
  policyTimes?(): { readonly activatedAt: number; readonly checkedAt: number | undefined };
  /** Limits of budgets and what was spent of them, in USD; undefined: they are not shown. */
  budgets?: (() => Promise<readonly WatchedBudget[]>) | undefined;
  /** Every code of a refusal: each is shown from the start, or an alert on an increase would miss the first one. */
  readonly refusalCodes?: readonly string[];
  /** By listener. */
  readonly loads: Readonly<Record<string, { readonly inFlight: number; readonly bufferedBytes: number }>>;
  queuedWrites(): number;
  cacheEntries(): number;
  cacheBytes(): number;
  restingTargets(): number;
  /** Number of the last entry of the audit log. */
  auditEntries?(): Promise<number>;
}

/**
 * Everything that is counted, by event. Values of labels are ours (routes, codes, actions) or the catalogue's (providers, models),
 * never a caller's text: so their number is bounded, and none of them tells anything.
 */
export interface Metrics {
  /** @param route the path of the route as it was declared, or `other` */
  requestEnded(route: string, status: number, code: string | undefined): void;
  rateLimited(endpoint: LimitedEndpoint): void;
  /** @param errorType `none` for one that succeeded */
  attemptEnded(target: MetricTarget, errorType: string): void;
  /** A stream has said its first word, so many milliseconds after its call was dispatched. */
  firstToken(target: MetricTarget, durationMs: number): void;
  /** A call ended without having been dispatched: denied, released, or served from the cache. */
  callFinished(call: EndedCall): void;
  callSettled(call: SettledCall): void;
  /** @param reason why it denies, such as `deny_models`; undefined when it permits */
  decided(reason: string | undefined): void;
  policyEvaluated(durationMs: number): void;
  cacheLookedUp(result: 'hit' | 'miss'): void;
  /** A credential of the environment was tried at the start. @param result `works`, or why it does not */
  providerChecked(provider: string, result: string): void;
  /** A bundle from elsewhere was put in force. */
  policyActivated(): void;
  /** @param code why a bundle from elsewhere was not put in force */
  policyRefused(code: string): void;
  /** A transaction of the writer has ended. */
  committed(durationMs: number): void;
  recovered(calls: number): void;
  /** A timer came so many seconds late. */
  loopDelayed(seconds: number): void;
  overReserved(): void;
  /** Counts the changes that a rule in mode `report` would have made to decisions. */
  reported(reports: ReportedRule): void;
  /** Counts the decisions that were written to the file, and those that were left out. */
  decisionsFiled(decisions: { readonly written: number; readonly dropped: number }): void;
  /** Adds what can be read at any moment; once. */
  watch(watched: ProductState): void;
  /** All of it in Prometheus' text format. */
  exposition(): Promise<string>;
}

/** Seconds; the first two are those of OpenTelemetry's conventions for generative AI. */
const BUCKETS = {
  call: [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
  firstToken: [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10],
  evaluation: [0.00001, 0.00002, 0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01],
  commit: [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25],
  loopDelay: [0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5],
};

const counter = <Label extends string>(name: string, help: string, ...labelNames: Label[]) => ({
  name: `portcullis_${name}_total`,
  type: 'counter',
  help,
  labelNames,
});
const histogram = <Label extends string>(name: string, buckets: number[], help: string, ...labelNames: Label[]) => ({
  name: `portcullis_${name}_seconds`,
  type: 'histogram',
  help,
  labelNames,
  buckets,
});
const gauge = <Label extends string>(name: string, help: string, ...labelNames: Label[]) => ({
  name: `portcullis_${name}`,
  type: 'gauge',
  help,
  labelNames,
});

const TARGET = ['provider', 'model'] as const;

/** Every metric of ours, as the exposition and the page show it. */
export const METRICS = {
  requests: counter('requests', 'HTTP requests that have ended.', 'route', 'status', 'code'),
  rateLimited: counter('rate_limited_requests', 'Requests refused by a rate limit.', 'endpoint'),
  calls: counter('calls', 'Calls on record that have ended.', 'action', ...TARGET, 'error_code'),
  attempts: counter('attempts', 'Attempts at providers that have ended.', ...TARGET, 'error_type'),
  callDuration: histogram(
    'call_duration',
    BUCKETS.call,
    'Time from the opening of a dispatched call to its settlement.',
    'action',
    ...TARGET,
  ),
  firstToken: histogram(
    'time_to_first_token',
    BUCKETS.firstToken,
    'Time from the dispatch of a streamed call to its first chunk with content.',
    ...TARGET,
  ),
  tokens: counter('tokens', 'Tokens of settled calls; each has one type.', ...TARGET, 'type'),
  cost: counter('cost_usd', 'Cost of settled calls in USD, rounded: the ledger is exact, this is not.', ...TARGET),
  decisions: counter('decisions', 'Decisions of the policy on calls.', 'outcome', 'reason'),
  evaluation: histogram('policy_evaluation', BUCKETS.evaluation, 'Time to evaluate the policy for one decision.'),
  policyActivations: counter('policy_activations', 'Policy bundles from elsewhere that were put in force.'),
  policyRefusals: counter('policy_refusals', 'Policy bundles that were refused, and looks that found none.', 'code'),
  providerChecks: counter(
    'provider_checks',
    'Credentials of the environment that were tried at the start.',
    'provider',
    'result',
  ),
  cacheLookups: counter('cache_lookups', 'Lookups in the cache of answers.', 'result'),
  commit: histogram('writer_commit', BUCKETS.commit, 'Time of one transaction of the writer.'),
  loopDelay: histogram(
    'event_loop_delay',
    BUCKETS.loopDelay,
    'Delay of the event loop: how late a timer fires that is due every 50 ms.',
  ),
  recovered: counter('recovered_calls', 'Calls that a crash left open and this start settled.'),
  overReservations: counter('over_reservations', 'Calls that cost more than had been reserved for them.'),
  reported: counter(
    'report_rule_decisions',
    'Decisions that a rule in mode `report` would have changed, by the id of the rule.',
    'rule',
    'effect',
  ),
  reportedAt: gauge(
    'report_rule_last_seen_timestamp_seconds',
    'When the last decision was made that a rule in mode `report` would have changed, since the start.',
    'rule',
  ),
  filedDecisions: counter('filed_decisions', 'Decisions written to `DECISION_LOG_FILE`.'),
  droppedDecisions: counter(
    'dropped_decisions',
    'Decisions left out of `DECISION_LOG_FILE` because too many were waiting to be written.',
  ),
  inFlight: gauge('requests_in_flight', 'Requests in flight.', 'listener'),
  bufferedBytes: gauge('buffered_body_bytes', 'Memory that request bodies take.', 'listener'),
  queuedWrites: gauge('writer_queue_operations', 'Writes that wait for the next transaction.'),
  cacheEntries: gauge('cache_entries', 'Kept answers.'),
  cacheBytes: gauge('cache_bytes', 'Memory of cached answers.'),
  restingTargets: gauge('resting_targets', 'Mappings, each with one credential, that rest after failures.'),
  auditEntries: gauge('audit_entries', 'Entries of the audit log, with those of jobs: it only grows.'),
  policyActivated: gauge('policy_activated_timestamp_seconds', 'When the policy in force was put in force.'),
  policyChecked: gauge(
    'policy_checked_timestamp_seconds',
    'When the source of policy bundles was last heard of; 0: there is none, or it was not.',
  ),
  budgetLimit: gauge(
    'budget_limit_usd',
    'Limit of a budget, by the id of its member, project or organization. With `BUDGET_METRICS=on` alone.',
    'scope',
    'id',
    'limit',
  ),
  budgetSpent: gauge(
    'budget_spent_usd',
    'What was spent of that limit, rounded; of a recurring one in the window that runs.',
    'scope',
    'id',
    'limit',
  ),
  build: gauge(
    'build_info',
    'Always 1; the labels are the version, commit and schema as `--version` prints them, the first digits of the policy bundle and the date of the catalogue.',
    'version',
    'commit',
    'schema',
    'bundle',
    'catalog_date',
  ),
};

/** Instruments that events move, by registry: several containers may live in one process. */
function instruments(registers: Registry[]) {
  /** Counted apart, by the labels in their order, and handed over when someone looks. */
  const counts = (metric: CounterConfiguration<string>): Tally => {
    const tally = new Tally();
    new Counter({
      ...metric,
      registers,
      collect() {
        this.reset();
        for (const [labels, count] of tally.counts()) this.labels(...labels).inc(count);
      },
    });
    return tally;
  };
  return {
    requests: counts(METRICS.requests),
    rateLimited: counts(METRICS.rateLimited),
    calls: counts(METRICS.calls),
    attempts: counts(METRICS.attempts),
    callDuration: new Histogram({ ...METRICS.callDuration, registers }),
    firstToken: new Histogram({ ...METRICS.firstToken, registers }),
    tokens: counts(METRICS.tokens),
    cost: counts(METRICS.cost),
    decisions: counts(METRICS.decisions),
    evaluation: new Histogram({ ...METRICS.evaluation, registers }),
    policyActivations: counts(METRICS.policyActivations),
    policyRefusals: counts(METRICS.policyRefusals),
    providerChecks: counts(METRICS.providerChecks),
    cacheLookups: counts(METRICS.cacheLookups),
    commit: new Histogram({ ...METRICS.commit, registers }),
    loopDelay: new Histogram({ ...METRICS.loopDelay, registers }),
    recovered: counts(METRICS.recovered),
    overReservations: counts(METRICS.overReservations),
    reported: counts(METRICS.reported),
    reportedAt: new Gauge({ ...METRICS.reportedAt, registers }),
    filedDecisions: counts(METRICS.filedDecisions),
    droppedDecisions: counts(METRICS.droppedDecisions),
  };
}

function watch(watched: ProductState, registers: Registry[]): void {
  const watchGauge = <Label extends string>(
    metric: GaugeConfiguration<Label>,
    collect: (gauge: Gauge<Label>) => void | Promise<void>,
  ): Gauge =>
    new Gauge({
      ...metric,
      registers,
      collect() {
        return collect(this);
      },
    });
  const number = (metric: GaugeConfiguration<string>, read: () => number): Gauge =>
    watchGauge(metric, (each) => each.set(read()));
  const byListener = (
    metric: GaugeConfiguration<'listener'>,
    read: (load: ProductState['loads'][string]) => number,
  ): Gauge =>
    watchGauge(metric, (each) => {
      for (const [listener, load] of Object.entries(watched.loads)) each.set({ listener }, read(load));
    });
  byListener(METRICS.inFlight, ({ inFlight }) => inFlight);
  byListener(METRICS.bufferedBytes, ({ bufferedBytes }) => bufferedBytes);
  number(METRICS.queuedWrites, watched.queuedWrites);
  number(METRICS.cacheEntries, watched.cacheEntries);
  number(METRICS.cacheBytes, watched.cacheBytes);
  number(METRICS.restingTargets, watched.restingTargets);
  const { auditEntries } = watched;
  if (auditEntries !== undefined) watchGauge(METRICS.auditEntries, async (each) => each.set(await auditEntries()));
  const { policyTimes } = watched;
  if (policyTimes !== undefined) {
    number(METRICS.policyActivated, () => policyTimes().activatedAt / 1000);
    number(METRICS.policyChecked, () => (policyTimes().checkedAt ?? 0) / 1000);
  }
  const { budgets } = watched;
  if (budgets !== undefined) {
    const show = (metric: GaugeConfiguration<string>, value: 'limitUsd' | 'spentUsd'): Gauge =>
      watchGauge(metric, async (each) => {
        const found = await budgets();
        each.reset();
        for (const budget of found) each.set(budget.labels, budget[value]);
      });
    show(METRICS.budgetLimit, 'limitUsd');
    show(METRICS.budgetSpent, 'spentUsd');
  }
  watchGauge(METRICS.build, (each) => {
    const { version, commit, schema, catalogDate } = watched;
    each.reset();
    each.set({ version, commit, schema, bundle: watched.bundleDigest().slice(0, 12), catalog_date: catalogDate }, 1);
  });
}

/** Registry of all containers in the process; once begun, its collection cannot be ended. */
let ofProcess: Registry | undefined;

function processRegistry(): Registry {
  if (ofProcess !== undefined) return ofProcess;
  ofProcess = new Registry();
  collectDefaultMetrics({ register: ofProcess });
  return ofProcess;
}

const NOBODY = { provider: 'none', model: 'none' };
const CUSTOM = { provider: 'custom', model: 'custom' };

function labelsOf(target: MetricTarget | undefined): { provider: string; model: string } {
  if (target === undefined) return NOBODY;
  return target.custom ? CUSTOM : { provider: target.providerId, model: target.modelId };
}

/** Class of a status: `2xx`. */
const STATUS_CLASSES = ['0xx', '1xx', '2xx', '3xx', '4xx', '5xx'];
const classOf = (status: number): string => STATUS_CLASSES[Math.floor(status / 100)] ?? 'other';

export function createMetrics(): Metrics {
  const registers = [new Registry()];
  const process = processRegistry();
  const counted = instruments(registers);
  const reportingRules = new Set<string>();
  /** Under way: everyone who asks meanwhile gets this one. */
  let gathering: Promise<string> | undefined;

  return {
    requestEnded(route, status, code = 'none') {
      counted.requests.of(route).of(classOf(status)).of(code).count += 1;
    },
    rateLimited(endpoint) {
      counted.rateLimited.of(endpoint).count += 1;
    },
    attemptEnded(target, errorType) {
      const { provider, model } = labelsOf(target);
      counted.attempts.of(provider).of(model).of(errorType).count += 1;
    },
    firstToken: (target, durationMs) => counted.firstToken.observe(labelsOf(target), durationMs / 1000),
    callFinished({ action, target, errorCode }) {
      const { provider, model } = labelsOf(target);
      counted.calls
        .of(action)
        .of(provider)
        .of(model)
        .of(errorCode ?? 'none').count += 1;
    },
    callSettled({ action, target, errorCode, durationMs, tokens, costUsd }) {
      const { provider, model } = labelsOf(target);
      counted.calls
        .of(action)
        .of(provider)
        .of(model)
        .of(errorCode ?? 'none').count += 1;
      counted.callDuration.observe({ action, provider, model }, durationMs / 1000);
      const ofTokens = counted.tokens.of(provider).of(model);
      for (const type of TOKEN_TYPES) if (tokens[type] > 0) ofTokens.of(type).count += tokens[type];
      counted.cost.of(provider).of(model).count += costUsd;
    },
    decided(reason = 'none') {
      counted.decisions.of(reason === 'none' ? 'permit' : 'deny').of(reason).count += 1;
    },
    policyEvaluated: (durationMs) => counted.evaluation.observe(durationMs / 1000),
    providerChecked(provider, result) {
      counted.providerChecks.of(provider).of(result).count += 1;
    },
    cacheLookedUp(result) {
      counted.cacheLookups.of(result).count += 1;
    },
    policyActivated() {
      counted.policyActivations.count += 1;
    },
    policyRefused(code) {
      counted.policyRefusals.of(code).count += 1;
    },
    committed: (durationMs) => counted.commit.observe(durationMs / 1000),
    loopDelayed: (seconds) => counted.loopDelay.observe(seconds),
    recovered(calls) {
      counted.recovered.count += calls;
    },
    overReserved() {
      counted.overReservations.count += 1;
    },
    reported({ ruleId, wouldDeny, wouldAllow, lastSeenAt }) {
      if (reportingRules.size < MAX_RULES) reportingRules.add(ruleId);
      const rule = reportingRules.has(ruleId) ? ruleId : 'other';
      const ofRule = counted.reported.of(rule);
      ofRule.of('would_deny').count += wouldDeny;
      ofRule.of('would_allow').count += wouldAllow;
      counted.reportedAt.set({ rule }, lastSeenAt / 1000);
    },
    decisionsFiled({ written, dropped }) {
      counted.filedDecisions.count += written;
      counted.droppedDecisions.count += dropped;
    },
    watch(watched) {
      for (const code of watched.refusalCodes ?? []) counted.policyRefusals.of(code).isShown = true;
      watch(watched, registers);
    },
    exposition: () => {
      gathering ??= Registry.merge([...registers, process])
        .metrics()
        .finally(() => {
          gathering = undefined;
        });
      return gathering;
    },
  };
}

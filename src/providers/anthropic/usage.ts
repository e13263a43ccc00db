import { normaliseUsage, type Usage } from '../../domain/usage.ts';
import { count, isRecord, record } from '../wire/json.ts';

/** Counts as the API words them; absent: not reported. */
interface Counts {
  readonly input?: number | undefined;
  readonly output?: number | undefined;
  readonly cacheRead?: number | undefined;
  readonly cacheWrite?: number | undefined;
  readonly cacheWrite1h?: number | undefined;
  readonly thinking?: number | undefined;
  readonly webSearches?: number | undefined;
}

/** What an answer has reported so far. */
export interface ReportedUsage extends Counts {
  /** Steps that summed the conversation up: the API bills them and leaves them out of its main numbers. */
  readonly compactions?: readonly Counts[] | undefined;
}

/** More steps than an answer takes. */
const MAX_STEPS = 1000;

/**
 * What was reported before with what is reported now. Each field's last value holds: none is added up and none compared,
 * because some providers behind this API change a field's meaning between a stream's start and its end.
 */
export function reportUsage(before: ReportedUsage, reported: unknown): ReportedUsage {
  if (!isRecord(reported)) return before;
  const now: ReportedUsage = { ...counts(reported), compactions: compactions(reported.iterations) };
  return { ...before, ...Object.fromEntries(Object.entries(now).filter(([, value]) => value !== undefined)) };
}

function counts(reported: Readonly<Record<string, unknown>>): Counts {
  const writes = record(reported.cache_creation);
  const write1h = count(writes.ephemeral_1h_input_tokens);
  const write5m = count(writes.ephemeral_5m_input_tokens);
  const split = write1h === undefined && write5m === undefined ? undefined : (write1h ?? 0) + (write5m ?? 0);
  return {
    input: count(reported.input_tokens),
    output: count(reported.output_tokens),
    cacheRead: count(reported.cache_read_input_tokens),
    cacheWrite: count(reported.cache_creation_input_tokens) ?? split,
    cacheWrite1h: write1h,
    thinking: count(record(reported.output_tokens_details).thinking_tokens),
    webSearches: count(record(reported.server_tool_use).web_search_requests),
  };
}

function compactions(steps: unknown): Counts[] | undefined {
  if (!Array.isArray(steps)) return undefined;
  return steps
    .slice(0, MAX_STEPS)
    .filter((step: unknown) => isRecord(step))
    .filter(({ type }) => type === 'compaction')
    .map(counts);
}

/**
 * The usage in our form: there `input_tokens` leaves cache reads and writes out, ours counts them in. Writes of an hour are
 * counted apart once; the rest is of five minutes. Undefined when the two main numbers were not reported.
 */
export function anthropicUsage(reported: ReportedUsage): Usage | undefined {
  if (reported.input === undefined || reported.output === undefined) return undefined;
  const steps: readonly Counts[] = [reported, ...(reported.compactions ?? [])];
  const total = (part: (step: Counts) => number | undefined): number =>
    steps.reduce((sum, step) => sum + (part(step) ?? 0), 0);
  const cacheRead = total((step) => step.cacheRead);
  const cacheWrite = total((step) => step.cacheWrite);
  const cacheWrite1hTokens = total((step) => Math.min(step.cacheWrite1h ?? 0, step.cacheWrite ?? 0));
  return normaliseUsage({
    promptTokens: total((step) => step.input) + cacheRead + cacheWrite,
    completionTokens: total((step) => step.output),
    reasoningTokens: total((step) => step.thinking),
    cachedTokens: cacheRead,
    cacheWrite5mTokens: cacheWrite - cacheWrite1hTokens,
    cacheWrite1hTokens,
    webSearches: total((step) => step.webSearches),
  });
}

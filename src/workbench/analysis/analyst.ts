import { setTimeout as pause } from 'node:timers/promises';
import type { Catalog } from '../../catalog/catalog.ts';
import type { CatalogData } from '../../catalog/catalog-file.ts';
import { ApiError, invalidField } from '../../domain/errors.ts';
import type { Clock } from '../../domain/time.ts';
import type { Turns } from '../../domain/turns.ts';
import type { AccessReport, DraftRule, EvaluateRequest, ReplayProgress } from '../../generated/types.ts';
import { SharedProgress } from '../../lib/threads.ts';
import { BundleRefused } from '../../policy/archive/read-archive.ts';
import type { PolicyBundle } from '../../policy/bundle.ts';
import { DatabaseThread } from '../../store/db/database-thread.ts';
import { tryBundle } from '../bundles/try-bundle.ts';
import type { ReplayScope } from '../replay/replay.ts';
import type { ReportOptions } from '../world/candidates.ts';
import type { Regrouping, RuleReplacement } from './drafts.ts';
import type { Rehearsal } from './rehearsal.ts';

/** Analyses the rules of one organization outside the serving thread. */
export interface Analyst {
  /** @throws ApiError: of the analysis itself, 503 when too many wait, 504 when it takes too long; PolicyFailure's are 503 */
  analyse(job: AnalysisJob, progress?: SharedProgress): Promise<Analysis>;
  /**
   * Analyses by the policy in an archive, which is third-party code, signed or not. It passes its trial first, in the same
   * turn, and the thread that ran it ends: it can harm nobody else.
   * @throws ApiError also 400 at `/bundle` for one that is refused or takes all memory, 499 when the signal is aborted
   */
  analyseBy(
    archive: Uint8Array,
    job: AnalysisJob,
    waiting: { readonly progress: SharedProgress; readonly signal: AbortSignal },
  ): Promise<Analysis>;
  close(): Promise<void>;
}

interface AnalystOptions {
  readonly databasePath: string;
  readonly catalog: Catalog;
  /** Ids of the providers that the operator has a credential for, or that need none. */
  readonly servedProviders: readonly string[];
  /** The policy in force. */
  readonly bundle: () => PolicyBundle;
  readonly clock: Clock;
  /** One analysis at a time unless these say otherwise. */
  readonly turns?: Turns;
  /** Milliseconds that one analysis may take. */
  readonly limitMs?: number;
}

/** Bytes of a report by a bundle of others, which the serving thread is handed. */
const MAX_FOREIGN_BYTES = 16 * 1024 * 1024;

export function createAnalyst({
  databasePath,
  catalog,
  servedProviders,
  bundle,
  clock,
  turns,
  limitMs = 30_000,
}: AnalystOptions): Analyst {
  const data: AnalysisJobData = {
    databasePath,
    catalog: { date: catalog.date, models: catalog.models(), providers: catalog.providers() },
    servedProviders,
  };
  const thread = new DatabaseThread({ job: 'analyse', data, ...(turns === undefined ? {} : { turns }) });
  const tooSlow = (): ApiError =>
    new ApiError(504, 'analysis_timeout', `The analysis takes longer than ${limitMs} ms: use the command line.`);
  return {
    analyse(job, progress) {
      const question: AnalysisQuestion = { job, now: clock.now(), bundle: bundle(), progress: progress?.memory };
      return thread.ask(job.organizationId, question, { limitMs, tooSlow });
    },
    async analyseBy(archive, job, { progress, signal }) {
      const prepare = async (): Promise<AnalysisQuestion> => ({
        job,
        now: clock.now(),
        bundle: await tryBundle({ archive, trust: null }, { signal }),
        progress: progress.memory,
        maxBytes: MAX_FOREIGN_BYTES,
      });
      try {
        return await thread.askApart(job.organizationId, prepare, { limitMs, tooSlow, signal });
      } catch (error) {
        throw bundleFault(error) ?? error;
      }
    },
    close: () => thread.close(),
  };
}

/** The error if the bundle is at fault; undefined: it is not. */
function bundleFault(error: unknown): ApiError | undefined {
  if (error instanceof BundleRefused) return invalidField('/bundle', `is refused: ${error.message}`);
  const cause = error instanceof Error ? error.cause : undefined;
  const isOutOfMemory = cause instanceof Error && 'code' in cause && cause.code === 'ERR_WORKER_OUT_OF_MEMORY';
  return isOutOfMemory ? invalidField('/bundle', 'takes more memory than there is for it') : undefined;
}

/** A question about one organization. Its shape was checked, and the asker's right to it. */
export type AnalysisJob = { readonly organizationId: string } & (
  | ({ readonly kind: 'access'; readonly keyId: AccessReport['holder']['id'] } & ReportOptions)
  | { readonly kind: 'evaluate'; readonly body: EvaluateRequest }
  | ({ readonly kind: 'diff'; readonly rules: readonly DraftRule[] } & ReportOptions)
  | ({ readonly kind: 'widening' } & RuleReplacement)
  | ({ readonly kind: 'regrouping' } & Regrouping)
  | ({ readonly kind: 'rehearsed' } & Pick<Rehearsal, 'before' | 'after'>)
  | ({ readonly kind: 'replay'; readonly judged: ReplayRules } & ReplayScope)
  | ({ readonly kind: 'replacements'; readonly rules: readonly RuleReplacement[] } & ReportOptions)
);

/** Rules by which logged decisions are judged again. */
export type ReplayRules =
  | { readonly by: 'current' | 'recorded' }
  | { readonly by: 'draft'; readonly rules: readonly DraftRule[] }
  | {
      readonly by: 'folder';
      readonly rules: readonly RuleReplacement[];
      readonly warnings: readonly string[];
      /** Revision of the organization's rules, for which the folder was planned. */
      readonly ruleRevision: number;
    };

/** Start data of the analysing thread. */
export interface AnalysisJobData {
  readonly databasePath: string;
  readonly catalog: CatalogData;
  readonly servedProviders: readonly string[];
}

/** Message to the thread. `now` in epoch ms. */
export interface AnalysisQuestion {
  readonly job: AnalysisJob;
  readonly now: number;
  /** Progress of a replay. */
  readonly progress: SharedArrayBuffer | undefined;
  /** Bundle by which the job is judged. */
  readonly bundle: PolicyBundle;
  /** Most bytes of the answer; undefined: any number. */
  readonly maxBytes?: number;
}

/** An analysis as bytes of JSON, with what it was judged by. */
export interface Analysis {
  readonly json: Uint8Array;
  readonly policyRevision: string;
}

/** Milliseconds between two looks at how far it is. */
const EVERY_MS = 200;

/**
 * A replay: how far it is, and at the end the analysis. It is given up when nobody reads on, or the signal is aborted.
 * @param analyse asks the analyst for it. @throws what that throws: ApiError 499 when the signal is aborted
 */
export async function* streamReplay(
  analyse: (progress: SharedProgress) => Promise<Analysis>,
  signal: AbortSignal,
): AsyncGenerator<ReplayProgress | Analysis> {
  const progress = new SharedProgress();
  const stop = (): void => progress.stop();
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  const running = analyse(progress);
  try {
    for (let told = '0 0'; ; ) {
      const analysis = await Promise.race([running, pause(EVERY_MS)]);
      if (analysis !== undefined) {
        yield analysis;
        return;
      }
      const { done, all } = progress.read();
      if (told === `${done} ${all}`) continue;
      told = `${done} ${all}`;
      yield { done, all };
    }
  } finally {
    signal.removeEventListener('abort', stop);
    stop();
  }
}

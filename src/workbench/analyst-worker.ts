import { parentPort, workerData } from 'node:worker_threads';
import { catalogOf } from '../catalog/catalog.ts';
import { ApiError, policyUnavailable } from '../domain/errors.ts';
import { ManualClock } from '../domain/time.ts';
import { readBundle } from '../policy/bundle.ts';
import { PolicyFailure } from '../policy/policy-failure.ts';
import { openDatabase } from '../store/database.ts';
import { analyse } from './analyse.ts';
import type { AnalysisAnswer, AnalysisMessage, AnalystWorkerData } from './analysis-job.ts';

const { databasePath, catalog: catalogData, servedProviders }: AnalystWorkerData = workerData;
const clock = new ManualClock(0);
const installation = { catalog: catalogOf([catalogData], clock), servedProviders: new Set(servedProviders) };
const bundle = readBundle();
const db = openDatabase(databasePath, { readonly: true, busyTimeoutMs: 2000 });

async function answer({ job, now }: AnalysisMessage): Promise<AnalysisAnswer> {
  try {
    clock.set(now);
    const { body, policyRevision } = await analyse({ db, installation, bundle }, job);
    return { json: new TextEncoder().encode(JSON.stringify(body)), policyRevision };
  } catch (error) {
    const { status, code, message, param, cause } = toApiError(error);
    return { refusal: { status, code, message, param, text: textOf(cause) } };
  }
}

function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof PolicyFailure) return policyUnavailable(error);
  return new ApiError(500, 'internal_error', 'An internal error occurred.', { cause: error });
}

const textOf = (cause: unknown): string | undefined => (cause instanceof Error ? cause.stack : undefined);

parentPort?.on('message', (message: AnalysisMessage) => {
  void answer(message).then((answered) => parentPort?.postMessage(answered));
});

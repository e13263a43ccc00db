import { catalogOf } from '../../catalog/catalog.ts';
import { clientLeft, invalidField, policyUnavailable } from '../../domain/errors.ts';
import { ManualClock } from '../../domain/time.ts';
import { SharedProgress } from '../../lib/threads.ts';
import { PolicyFailure } from '../../policy/data-document.ts';
import { openDatabase } from '../../store/db/database.ts';
import { databaseJob } from '../../store/db/database-thread.ts';
import { analyse } from './analyse.ts';
import type { Analysis, AnalysisJobData, AnalysisQuestion } from './analyst.ts';

export function startJob({ databasePath, catalog: catalogData, servedProviders }: AnalysisJobData) {
  const clock = new ManualClock(0);
  const installation = { catalog: catalogOf([catalogData], clock), servedProviders: new Set(servedProviders) };
  const db = openDatabase(databasePath, { readonly: true, busyTimeoutMs: 2000 });
  return databaseJob(
    async ({ job, now, bundle, progress, maxBytes }: AnalysisQuestion): Promise<Analysis> => {
      clock.set(now);
      const shared = new SharedProgress(progress);
      const { body, policyRevision } = await analyse({ db, installation, bundle, now }, job, (done, all) => {
        if (!shared.tell(done, all)) throw clientLeft();
      });
      const json = new TextEncoder().encode(JSON.stringify(body));
      if (maxBytes !== undefined && json.byteLength > maxBytes) {
        throw invalidField('/bundle', `makes a report of more than ${maxBytes} bytes`);
      }
      return { json, policyRevision };
    },
    (error) => (error instanceof PolicyFailure ? policyUnavailable(error) : undefined),
  );
}

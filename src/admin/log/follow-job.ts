import { openDatabase } from '../../store/db/database.ts';
import { databaseJob } from '../../store/db/database-thread.ts';
import { nextReportCounts } from '../../store/ledger/call-follower.ts';
import { nextBlock } from '../../store/ledger/call-index.ts';
import { DecisionFile } from './decision-file.ts';
import type { FollowAnswer, FollowJobData, FollowQuestion } from './follow-calls.ts';

export function startJob({ databasePath, decisionFile }: FollowJobData) {
  const db = openDatabase(databasePath, { readonly: true, busyTimeoutMs: 2000 });
  const file = decisionFile === undefined ? undefined : new DecisionFile(db, decisionFile);
  return databaseJob(({ what }: FollowQuestion): FollowAnswer => {
    switch (what) {
      case 'block':
        return { block: nextBlock(db) };
      case 'reports':
        return { reports: nextReportCounts(db) };
      case 'file':
        return { file: file?.write() };
    }
  });
}

import type { CatalogData } from '../../catalog/catalog-file.ts';
import type { AccessReport, DraftRule, EvaluateRequest } from '../../generated/types.ts';
import type { PolicyBundle } from '../../policy/bundle.ts';
import type { ReplayScope } from '../replay/replay.ts';
import type { Shown } from '../world/candidates.ts';
import type { RuleReplacement } from './drafts.ts';
import type { Regrouping } from './widening.ts';

/** What can be asked about one organization. Its shape was checked, and whether the asker may. */
export type AnalysisJob = { readonly organizationId: string } & (
  | ({ readonly kind: 'access'; readonly keyId: AccessReport['holder']['id'] } & Shown)
  | { readonly kind: 'evaluate'; readonly body: EvaluateRequest }
  | ({ readonly kind: 'diff'; readonly rules: readonly DraftRule[] } & Shown)
  | ({ readonly kind: 'widening' } & RuleReplacement)
  | ({ readonly kind: 'regrouping' } & Regrouping)
  | ({ readonly kind: 'replay'; readonly judged: ReplayRules } & ReplayScope)
  | ({ readonly kind: 'replacements'; readonly rules: readonly RuleReplacement[] } & Shown)
);

/** By which rules logged decisions are judged again. */
export type ReplayRules =
  | { readonly by: 'current' | 'recorded' }
  | { readonly by: 'draft'; readonly rules: readonly DraftRule[] }
  | {
      readonly by: 'folder';
      readonly rules: readonly RuleReplacement[];
      readonly warnings: readonly string[];
      /** Of the organization's rules, for which the folder was planned. */
      readonly ruleRevision: number;
    };

/** What the analysing thread is started with. */
export interface AnalystWorkerData {
  readonly databasePath: string;
  readonly catalog: CatalogData;
  readonly servedProviders: readonly string[];
}

/** What it is sent. `now` in epoch ms. */
export interface AnalysisQuestion {
  readonly job: AnalysisJob;
  readonly now: number;
  /** Of a replay. */
  readonly progress: SharedArrayBuffer | undefined;
  /** By which it is judged. */
  readonly bundle: PolicyBundle;
  /** Most bytes of the answer; undefined: any number. */
  readonly maxBytes?: number;
}

/** An analysis as bytes of JSON, with what it was judged by. */
export interface Analysis {
  readonly json: Uint8Array;
  readonly policyRevision: string;
}

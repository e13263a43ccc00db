import { initial } from './0001-initial.ts';
import { providerFields } from './0002-provider-fields.ts';
import { textParts } from './0003-text-parts.ts';
import { budgets } from './0004-budgets.ts';
import { unknownPrices } from './0005-unknown-prices.ts';
import { rolledSecrets } from './0006-rolled-secrets.ts';
import { keptUsage } from './0007-kept-usage.ts';
import { tools } from './0008-tools.ts';
import { signIn } from './0009-sign-in.ts';
import { oauth } from './0010-oauth.ts';
import { oneRuleValue } from './0011-one-rule-value.ts';
import { columnNames } from './0012-column-names.ts';
import { oneRowACall } from './0013-one-row-a-call.ts';
import { changes } from './0014-changes.ts';
import { callIndex } from './0015-call-index.ts';
import { groups } from './0016-groups.ts';
import { tagSets } from './0017-tag-sets.ts';
import { reportRules } from './0018-report-rules.ts';
import { managedRules } from './0019-managed-rules.ts';
import { keyTags } from './0020-key-tags.ts';
import { callTimes } from './0021-call-times.ts';
import { aliases } from './0022-aliases.ts';
import { keyBounds } from './0023-key-bounds.ts';
import { derivedRights } from './0024-derived-rights.ts';
import { refusedRequests } from './0025-refused-requests.ts';
import { minuteLimits } from './0026-minute-limits.ts';

/** Every migration, in order; the version of a schema is the number of those applied. Never change one that was released. */
export const MIGRATIONS: readonly string[] = [
  initial,
  providerFields,
  textParts,
  budgets,
  unknownPrices,
  rolledSecrets,
  keptUsage,
  tools,
  signIn,
  oauth,
  oneRuleValue,
  columnNames,
  oneRowACall,
  changes,
  callIndex,
  groups,
  tagSets,
  reportRules,
  managedRules,
  keyTags,
  callTimes,
  aliases,
  keyBounds,
  derivedRights,
  refusedRequests,
  minuteLimits,
];

import { listInputs } from '../../core/reachable.ts';
import { effectOf, type PolicyRule } from '../../domain/iam-rule.ts';
import type { Mapping } from '../../domain/model.ts';
import type {
  AccessAddressClass,
  AccessCell,
  AccessOverview,
  AccessReport,
  AccessRule,
  PolicyViolation,
} from '../../generated/types.ts';
import { compileSubjectRules, type DataDocument, dataDocument } from '../../policy/data-document.ts';
import type { Pdp } from '../../policy/pdp.ts';
import {
  type AddressSet,
  addressClasses,
  formatAddresses,
  intersect,
  isEmpty,
  union,
} from '../world/address-classes.ts';
import { credentialsIn, mappingsOf, meaningOfName, ownModels, type ReportOptions } from '../world/candidates.ts';
import { type Holder, holdersOf, reachOf, SubjectTasks } from '../world/holders.ts';
import type { Judges, OnProgress } from '../world/judges.ts';
import {
  addressInput,
  createSubjectJudge,
  isIpRule,
  judgesMapping,
  rangesOf,
  type SubjectJudge,
} from '../world/subject-judge.ts';
import { groupNameOf, type World, type WorldSubject } from '../world/world.ts';

/**
 * Everything that a holder reaches, with the rules that decide it: by enumeration, so exact. Mappings and addresses are judged
 * apart, because no rule looks at both. @throws PolicyFailure
 */
export function accessReport(
  pdp: Pdp,
  world: World,
  holder: Holder,
  policyRevision: string,
  { withoutCredential }: ReportOptions,
): AccessReport {
  const hasCredential = credentialsIn(world);
  const judge = createSubjectJudge(pdp, mappingsOf(world, holder.organizationId));
  const all = mappingCells(pdp, judge, holder.subjects, (mapping) => hasCredential(holder, mapping));
  const addresses = addressRows(pdp, judge, holder.subjects);
  const passes = addresses.some(({ permitted }) => permitted);
  const denying = [...new Set(addresses.flatMap(({ ruleIds }) => ruleIds))].sort();
  const cells = all.filter(({ credential }) => credential || withoutCredential);
  const named = new Set([...cells, ...addresses].flatMap(({ ruleIds }) => ruleIds));
  const plain = ({ model, provider, credential, ruleIds }: Cell): AccessCell => ({
    model,
    provider,
    credential,
    ruleIds,
  });
  return {
    holder: { scope: holder.scope, id: holder.id, name: holder.name },
    policyRevision,
    addresses,
    reached: passes ? cells.filter(({ permitted }) => permitted).map(plain) : [],
    denied: cells
      .filter(({ permitted }) => !permitted || !passes)
      .map((cell) => plain(cell.permitted ? { ...cell, ruleIds: denying } : cell)),
    withoutCredential: passes ? all.filter(({ permitted, credential }) => permitted && !credential).length : 0,
    ...aliasesReached(world, holder, passes ? all.filter(({ permitted, credential }) => permitted && credential) : []),
    rules: namedRules(holder.subjects, named),
  };
}

/** Each alias that the holder can name, with the mappings that it leads to; nothing where there are none. */
function aliasesReached(world: World, holder: Holder, reached: readonly Cell[]): Pick<AccessReport, 'aliases'> {
  const names = [...ownModels(world, holder).aliases.keys()].sort();
  if (names.length === 0) return {};
  const ids = new Set(reached.map(({ provider, model }) => `${provider}/${model}`));
  return {
    aliases: names.map((name) => ({
      name,
      mappings: (meaningOfName(world, holder, name)?.mappings ?? []).map(({ id }) => id).filter((id) => ids.has(id)),
    })),
  };
}

/** The rules of a call's subjects that something names. */
export const namedRules = (subjects: readonly WorldSubject[], named: ReadonlySet<string>): AccessRule[] =>
  subjects.flatMap((subject) =>
    subject.rules
      .filter(({ id }) => named.has(id))
      .map(({ id, ruleType, description, managedBy }) => ({
        id,
        scope: subject.scope,
        ...groupNameOf(subject),
        ruleType,
        description,
        ...(managedBy === undefined ? {} : { managedBy }),
      })),
  );

/** Returns the judges' mappings that each key and member of a world reaches. @throws PolicyFailure */
export async function accessOverview(
  judges: Judges,
  world: World,
  { withoutCredential }: ReportOptions,
  onProgress?: OnProgress,
): Promise<AccessOverview> {
  const tasks = new SubjectTasks();
  const holders = holdersOf(world);
  for (const { subjects } of holders) for (const { rules } of subjects) tasks.add(rules);
  await tasks.judge(judges, onProgress);
  const hasCredential = credentialsIn(world);
  return {
    holders: holders.map((holder) => {
      const { scope, id, name, subjects } = holder;
      const scopes = subjects.map(({ rules }) => tasks.of(rules).before);
      const reach = reachOf(scopes, judges.mappings.length);
      const permitted = judges.mappings.filter((_, position) => reach.mappings[position] === 1);
      const [callable = [], others = []] = [true, false].map((wanted) =>
        permitted.filter((mapping) => hasCredential(holder, mapping) === wanted).map((mapping) => mapping.id),
      );
      return {
        scope,
        id,
        name,
        mappings: callable,
        withoutCredential: others.length,
        ...(withoutCredential ? { mappingsWithoutCredential: others } : {}),
        addresses: formatAddresses(reach.addresses),
      };
    }),
  };
}

/** The data document of a call, of the rules that `keep` names. */
export const documentOf = (subjects: readonly WorldSubject[], keep: (rule: PolicyRule) => boolean): DataDocument =>
  dataDocument(
    subjects.map(({ id, rules }) => ({
      id,
      rules: compileSubjectRules(rules.filter(keep)),
    })),
  );

interface Cell extends AccessCell {
  readonly permitted: boolean;
}

function mappingCells(
  pdp: Pdp,
  judge: SubjectJudge,
  subjects: readonly WorldSubject[],
  hasCredential: (mapping: Mapping) => boolean,
): Cell[] {
  const { mappings } = judge;
  const data = documentOf(subjects, (rule) => isEnforced(rule) && !isIpRule(rule));
  const violations = new Map<string, PolicyViolation[]>();
  const permitted = new Set<string>();
  for (const input of listInputs({ subjects: bare(subjects), clientIp: null }, mappings)) {
    const decision = pdp.decide(input, data);
    for (const id of decision.permitted) permitted.add(id);
    for (const violation of decision.violations) {
      const id = violation.candidate ?? '';
      violations.set(id, [...(violations.get(id) ?? []), violation]);
    }
  }
  const allowing = subjects.flatMap(({ rules }) => rules.filter((rule) => isEnforcedAllow(rule) && !isIpRule(rule)));
  const matches = allowing.map((rule) => ({ rule, matched: judge.access([rule]).mappings }));
  return mappings.map((mapping, position) => ({
    model: mapping.modelId,
    provider: mapping.providerId,
    credential: hasCredential(mapping),
    permitted: permitted.has(mapping.id),
    ruleIds: permitted.has(mapping.id)
      ? matches
          .filter(({ rule, matched }) => judgesMapping(rule, mapping) && matched[position] === 1)
          .map(({ rule }) => rule.id)
          .sort()
      : ruleIdsOf(violations.get(mapping.id) ?? []),
  }));
}

const bare = (subjects: readonly WorldSubject[]) => subjects.map(({ scope, id }) => ({ scope, id }));

const isEnforced = ({ mode }: PolicyRule): boolean => mode === 'enforce';

export const isEnforcedAllow = (rule: PolicyRule): boolean => isEnforced(rule) && effectOf(rule.ruleType) === 'allow';

const ruleIdsOf = (violations: readonly PolicyViolation[]): string[] =>
  [...new Set(violations.flatMap(({ ruleIds }) => ruleIds))].sort();

/** The classes of addresses, those alike put together. */
function addressRows(pdp: Pdp, judge: SubjectJudge, subjects: readonly WorldSubject[]): AccessAddressClass[] {
  const data = documentOf(subjects, (rule) => isEnforced(rule) && isIpRule(rule));
  const enforced = subjects.flatMap(({ rules }) => rules.filter((rule) => rule.mode === 'enforce' && isIpRule(rule)));
  const allowing = enforced
    .filter(isEnforcedAllow)
    .map(({ id, ...rule }) => ({ id, matched: judge.access([{ ...rule, id }]).addresses }));
  const rows = new Map<string, { permitted: boolean; ruleIds: string[]; addresses: AddressSet[] }>();
  for (const { representative, addresses } of addressClasses(rangesOf(enforced))) {
    const decision = pdp.decide(addressInput(representative, bare(subjects)), data);
    const permitted = decision.permitted.length > 0;
    const ruleIds = permitted
      ? allowing.filter(({ matched }) => !isEmpty(intersect(matched, addresses))).map(({ id }) => id)
      : ruleIdsOf(decision.violations);
    const key = JSON.stringify([permitted, ruleIds]);
    const row = rows.get(key) ?? { permitted, ruleIds, addresses: [] };
    rows.set(key, row);
    row.addresses.push(addresses);
  }
  const sorted = [...rows.values()].sort((a, b) => Number(b.permitted) - Number(a.permitted));
  return sorted.map((row) => ({ ...row, addresses: formatAddresses(union(row.addresses)) }));
}

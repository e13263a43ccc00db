import type { Catalog } from '../../catalog/catalog.ts';
import { KnownNames, ruleWarnings } from '../../core/known-names.ts';
import type { TrustedProxies } from '../../domain/address.ts';
import { checkShape } from '../../domain/check-shape.ts';
import { invalidField, permissionDenied } from '../../domain/errors.ts';
import { type CanonicalRule, kindOf } from '../../domain/iam-rule.ts';
import { newId } from '../../domain/id.ts';
import { readRule, readRuleRequest, storedRule } from '../../domain/rule-content.ts';
import { formatTime } from '../../domain/time.ts';
import type {
  IamRule,
  RuleAnswer,
  RuleChangeAnswer,
  RuleCreateAnswer,
  RuleDeletion,
  RuleList,
  RuleReports,
  RuleType,
} from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import type { Database } from '../../store/db/database.ts';
import { decodeCursor, type PageRequest, toPage } from '../../store/db/records.ts';
import { readCustomNames } from '../../store/providers/custom-names.ts';
import * as store from '../../store/rules/rules.ts';
import { getOrganization } from '../../store/tenants/tenants.ts';
import { type Actor, recordChange } from '../audit/audit-trail.ts';
import { type JudgedChange, judgedWidening, type RulePlan, readPlanOf } from './judged-change.ts';
import { checkBounds, compileRules, mergedRule, ruleChange } from './rule-edits.ts';
import { checkRulesChangeable, getRuleSubject, type RuleOwner, type RuleSubject } from './rule-owner.ts';

/** The world in which a rule will be judged. */
export interface RuleWorld {
  readonly catalog: Pick<Catalog, 'mappings' | 'providers'>;
  /** Undefined: `TRUSTED_PROXIES` is unset. */
  readonly trustedProxies: TrustedProxies | undefined;
}

/** Inputs for a write of rules, apart from the database; `now` in epoch ms. */
export interface RuleWrite extends RuleWorld {
  readonly now: number;
}

/** The first steps of making a rule, which write nothing. @throws ApiError as `createRule` */
export const readRuleCreation = (db: Database, actor: Actor, owner: RuleOwner, body: unknown): RulePlan =>
  prepareCreation(db, actor, owner, body).plan;

/**
 * Makes a rule, in force from the next request on. Shape first (400), then owner (404, 403) and plan (403), then bounds (400), then
 * new access (409).
 * @param body as `RuleCreateRequest`, unchecked. @param judged what is known of the new rule; absent: nothing
 * @throws StaleRules when it was judged for other rules
 */
export function createRule(
  db: Database,
  actor: Actor,
  owner: RuleOwner,
  body: unknown,
  write: RuleWrite,
  judged?: JudgedChange,
): RuleCreateAnswer {
  return db.transaction(() => {
    const { subject, content, others, plan } = prepareCreation(db, actor, owner, body);
    const widens = judgedWidening(judged, plan);
    const { canonical, ...rule } = content;
    const { ruleId: id } = plan;
    const record = store.insertRule(db, actor.organizationId, subject.id, { id, ...rule }, compileRules, write.now);
    recordChange(db, actor, 'rule', 'create', { before: null, after: written(record, subject) }, write.now);
    const warnings = [...warningsOf(db, actor, canonical, write), ...nextToManaged(others)];
    return { rule: ruleView(record, subject), warnings, widens };
  });
}

function prepareCreation(db: Database, actor: Actor, owner: RuleOwner, body: unknown) {
  const { content, failOnNewAccess } = readRuleRequest(body);
  const subject = getRuleSubject(db, actor, owner);
  checkRulesChangeable(actor, subject);
  checkPlan(db, actor, content.ruleType);
  const others = store.listRules(db, actor.organizationId, subject.id);
  checkBounds([...others.map(storedRule), content.canonical]);
  const step = { subject, ruleId: newId('rule'), others, before: null, after: content };
  return { subject, content, others, plan: readPlanOf(db, actor, step, failOnNewAccess) };
}

/** A page of the owner's rules, oldest first. */
export function listRules(db: Database, actor: Actor, owner: RuleOwner, page: PageRequest): RuleList {
  const after = page.cursor === undefined ? '' : decodeCursor(page.cursor);
  const subject = getRuleSubject(db, actor, owner);
  const rest = store.listRules(db, actor.organizationId, subject.id).filter(({ id }) => id > after);
  const { items, nextCursor } = toPage(rest, page.limit);
  return { rules: items.map((record) => ruleView(record, subject)), nextCursor };
}

/** One rule of the owner, with its warnings as they stand now; 404 when they have none of that id. */
export function getRule(db: Database, actor: Actor, owner: RuleOwner, id: string, world: RuleWorld): RuleAnswer {
  const subject = getRuleSubject(db, actor, owner);
  const record = store.getRule(db, actor.organizationId, subject.id, id);
  return { rule: ruleView(record, subject), warnings: warningsOf(db, actor, storedRule(record), world) };
}

/** The first steps of a change, which write nothing. @throws ApiError as `changeRule` */
export const readRulePlan = (db: Database, actor: Actor, owner: RuleOwner, id: string, body: unknown): RulePlan =>
  prepareChange(db, actor, owner, id, body).plan;

/**
 * Changes a rule; the merged rule is judged as a new one is. Shape first (400), then owner (404, 403), rule (404), merged shape
 * (400), plan (403), bounds (400), then new access (409).
 * @param body as `RulePatch`, unchecked. @param judged what is known of the change; absent: nothing
 * @throws StaleRules when it was judged for other rules
 */
export function changeRule(
  db: Database,
  actor: Actor,
  owner: RuleOwner,
  id: string,
  body: unknown,
  write: RuleWrite,
  judged?: JudgedChange,
): RuleChangeAnswer {
  return db.transaction(() => {
    const { organizationId } = actor;
    const { subject, present, content, plan } = prepareChange(db, actor, owner, id, body);
    const widens = judgedWidening(judged, plan);
    const { canonical, ...rule } = content;
    const record = store.updateRule(db, organizationId, subject.id, id, rule, compileRules, write.now);
    const change = ruleChange(written(present, subject), written(record, subject));
    recordChange(db, actor, 'rule', 'update', change, write.now);
    const warnings = [
      ...warningsOf(db, actor, canonical, write),
      ...managedElsewhere(present, 'takes this change back'),
    ];
    return { rule: ruleView(record, subject), before: ruleView(present, subject), warnings, widens };
  });
}

function prepareChange(db: Database, actor: Actor, owner: RuleOwner, id: string, body: unknown) {
  const patch = checkShape(validator('RulePatch'), body);
  const { failOnNewAccess = false, ...fields } = patch;
  if (Object.keys(fields).length === 0) {
    throw invalidField('', 'must hold at least one field of the rule', { kind: 'empty' });
  }
  const subject = getRuleSubject(db, actor, owner);
  checkRulesChangeable(actor, subject);
  const present = store.getRule(db, actor.organizationId, subject.id, id);
  const content = mergedRule(present, patch);
  checkPlan(db, actor, content.ruleType);
  const others = otherRules(db, actor, subject, id);
  checkBounds([...others.map(storedRule), content.canonical]);
  const step = { subject, ruleId: id, others, before: present, after: content };
  return { subject, present, content, plan: readPlanOf(db, actor, step, failOnNewAccess) };
}

/** The first steps of a deletion, which write nothing. @throws ApiError as `deleteRule` */
export const readRuleDeletion = (
  db: Database,
  actor: Actor,
  owner: RuleOwner,
  id: string,
  failOnNewAccess: boolean,
): RulePlan => prepareDeletion(db, actor, owner, id, failOnNewAccess).plan;

/**
 * Deletes a rule: it binds nothing from the next request on. Owner (404, 403), then rule (404), then new access (409).
 * @param now epoch ms @param judged what is known of the deletion; absent: nothing @throws StaleRules when it was judged for other rules
 */
export function deleteRule(
  db: Database,
  actor: Actor,
  owner: RuleOwner,
  id: string,
  failOnNewAccess: boolean,
  now: number,
  judged?: JudgedChange,
): RuleDeletion {
  return db.transaction(() => {
    const { subject, present, plan } = prepareDeletion(db, actor, owner, id, failOnNewAccess);
    const widens = judgedWidening(judged, plan);
    store.deleteRule(db, actor.organizationId, subject.id, id, compileRules);
    recordChange(db, actor, 'rule', 'delete', { before: written(present, subject), after: null }, now);
    const warnings = managedElsewhere(present, 'makes it again');
    return { id, deleted: true, widens, ...(warnings.length === 0 ? {} : { warnings }) };
  });
}

function prepareDeletion(db: Database, actor: Actor, owner: RuleOwner, id: string, failOnNewAccess: boolean) {
  const subject = getRuleSubject(db, actor, owner);
  checkRulesChangeable(actor, subject);
  const present = store.getRule(db, actor.organizationId, subject.id, id);
  const others = otherRules(db, actor, subject, id);
  const step = { subject, ruleId: id, others, before: present, after: null };
  return { subject, present, plan: readPlanOf(db, actor, step, failOnNewAccess) };
}

const otherRules = (db: Database, { organizationId }: Actor, subject: RuleSubject, id: string): store.RuleRecord[] =>
  store.listRules(db, organizationId, subject.id).filter((other) => other.id !== id);

/** The warning for a change to a rule that a policy folder states. @param next effect of the folder's next apply */
const managedElsewhere = ({ managedBy, managedName }: store.RuleRecord, next: string): string[] =>
  managedBy === null
    ? []
    : [`The policy folder "${managedBy}" states this rule as "${managedName}": its next apply ${next}.`];

/** The warning for a new rule whose owner has other rules that a policy folder states. */
function nextToManaged(others: readonly store.RuleRecord[]): string[] {
  const folders = new Set(others.flatMap(({ managedBy }) => managedBy ?? []));
  return [...folders].map(
    (folder) =>
      `The policy folder "${folder}" states rules of the same owner, and not this one: an apply with --prune removes it.`,
  );
}

/** IP rules need the enterprise plan; those that stand when it ends stay in force, and can be deleted (section 4). */
export function checkPlan(db: Database, actor: Actor, ruleType: RuleType): void {
  if (kindOf(ruleType) !== 'ip_cidrs' || getOrganization(db, actor.organizationId).plan === 'enterprise') return;
  throw permissionDenied('IP rules are part of the enterprise plan only.');
}

const warningsOf = (db: Database, { organizationId }: Actor, rule: CanonicalRule, world: RuleWorld): string[] =>
  ruleWarnings(rule, new KnownNames(world.catalog, readCustomNames(db, organizationId)), world.trustedProxies);

/** A rule, with what it would have changed in mode `report`. */
export const ruleView = (record: store.RuleRecord, subject: Pick<RuleSubject, 'name'>): IamRule => ({
  ...written(record, subject),
  reportOnly: reportsOf(record),
});

const reportsOf = ({ reportsSince, wouldDeny, wouldAllow, lastSeenAt }: store.RuleRecord): RuleReports | null =>
  reportsSince === null
    ? null
    : {
        since: formatTime(reportsSince),
        wouldDeny,
        wouldAllow,
        lastSeenAt: lastSeenAt === null ? null : formatTime(lastSeenAt),
      };

/** A rule as someone wrote it. */
export function written(record: store.RuleRecord, { name }: Pick<RuleSubject, 'name'>): IamRule {
  const { managedBy, managedName } = record;
  const { ruleType, ruleValue } = readRule({ ruleType: record.ruleType, ruleValue: record.ruleValue });
  return {
    id: record.id,
    createdAt: formatTime(record.createdAt),
    updatedAt: formatTime(record.updatedAt),
    ruleType,
    ruleValue,
    status: record.status,
    mode: record.mode,
    description: record.description,
    apiKeyId: record.scope === 'key' ? record.subjectId : null,
    memberId: record.scope === 'member' ? record.subjectId : null,
    groupId: record.scope === 'group' ? record.subjectId : null,
    organizationId: record.scope === 'organization' ? record.subjectId : null,
    ownerName: name,
    managedBy: managedBy === null || managedName === null ? null : { source: managedBy, name: managedName },
  };
}

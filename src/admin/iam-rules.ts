import { checkShape } from '../domain/check-shape.ts';
import { permissionDenied } from '../domain/errors.ts';
import { kindOf } from '../domain/iam-rule.ts';
import { newId } from '../domain/id.ts';
import { type CanonicalRule, type RuleContent, readRule, storedRule } from '../domain/rule-content.ts';
import { formatTime } from '../domain/time.ts';
import type { Deletion, IamRule, RuleAnswer, RuleList, RulePatch, RuleType } from '../generated/types.ts';
import { validateRulePatch } from '../generated/validators.js';
import { readCustomNames } from '../store/custom-names.ts';
import type { Database } from '../store/database.ts';
import { decodeCursor, type PageRequest, toPage } from '../store/page.ts';
import * as store from '../store/rules.ts';
import { getOrganization } from '../store/tenants.ts';
import type { Actor } from './actor.ts';
import { recordChange } from './audit-trail.ts';
import { compileRules } from './compile-rules.ts';
import { checkBounds } from './rule-bounds.ts';
import { ruleChange } from './rule-change.ts';
import { checkRulesChangeable, getRuleSubject, type RuleOwner } from './rule-owner.ts';
import { type RuleWorld, ruleWarnings } from './rule-warnings.ts';

/** What a write of rules needs beside the database; `now` in epoch ms. */
export interface RuleWrite extends RuleWorld {
  readonly now: number;
}

/**
 * Makes a rule, in force from the next request on. Shape first (400), then owner (404, 403) and plan (403), then bounds (400).
 * @param body as `RuleCreate`, unchecked.
 */
export function createRule(db: Database, actor: Actor, owner: RuleOwner, body: unknown, write: RuleWrite): RuleAnswer {
  const content = readRule(body);
  return db.transaction(() => {
    const subject = getRuleSubject(db, actor, owner);
    checkRulesChangeable(actor, subject);
    checkPlan(db, actor, content.ruleType);
    const others = store.listRules(db, actor.organizationId, subject.id);
    checkBounds([...others.map(storedRule), content.canonical]);
    const rule = { id: newId('rule'), ...stored(content) };
    const record = store.insertRule(db, actor.organizationId, subject.id, rule, compileRules, write.now);
    const made = view(record);
    recordChange(db, actor, 'rule', 'create', { before: null, after: made }, write.now);
    return { rule: made, warnings: warningsOf(db, actor, content.canonical, write) };
  });
}

/** A page of the owner's rules, oldest first. */
export function listRules(db: Database, actor: Actor, owner: RuleOwner, page: PageRequest): RuleList {
  const after = page.cursor === undefined ? '' : decodeCursor(page.cursor);
  const subject = getRuleSubject(db, actor, owner);
  const rest = store.listRules(db, actor.organizationId, subject.id).filter(({ id }) => id > after);
  const { items, nextCursor } = toPage(rest, page.limit);
  return { rules: items.map(view), nextCursor };
}

/** One rule of the owner, with its warnings as they stand now; 404 when he has none of that id. */
export function getRule(db: Database, actor: Actor, owner: RuleOwner, id: string, world: RuleWorld): RuleAnswer {
  const subject = getRuleSubject(db, actor, owner);
  const record = store.getRule(db, actor.organizationId, subject.id, id);
  return { rule: view(record), warnings: warningsOf(db, actor, storedRule(record), world) };
}

/**
 * Changes a rule; the merged rule is judged as a new one is.
 * @param body as `RulePatch`, unchecked.
 */
export function changeRule(
  db: Database,
  actor: Actor,
  owner: RuleOwner,
  id: string,
  body: unknown,
  write: RuleWrite,
): RuleAnswer {
  const patch = checkShape(validateRulePatch, body);
  return db.transaction(() => {
    const { organizationId } = actor;
    const subject = getRuleSubject(db, actor, owner);
    const present = store.getRule(db, organizationId, subject.id, id);
    const content = merged(present, patch);
    checkRulesChangeable(actor, subject);
    checkPlan(db, actor, content.ruleType);
    const others = store.listRules(db, organizationId, subject.id).filter((other) => other.id !== id);
    checkBounds([...others.map(storedRule), content.canonical]);
    const record = store.updateRule(db, organizationId, subject.id, id, stored(content), compileRules, write.now);
    const changed = view(record);
    recordChange(db, actor, 'rule', 'update', ruleChange(view(present), changed), write.now);
    return { rule: changed, warnings: warningsOf(db, actor, content.canonical, write) };
  });
}

/** Deletes a rule: it binds nothing from the next request on. @param now epoch ms */
export function deleteRule(db: Database, actor: Actor, owner: RuleOwner, id: string, now: number): Deletion {
  return db.transaction(() => {
    const subject = getRuleSubject(db, actor, owner);
    const before = view(store.getRule(db, actor.organizationId, subject.id, id));
    checkRulesChangeable(actor, subject);
    store.deleteRule(db, actor.organizationId, subject.id, id, compileRules);
    recordChange(db, actor, 'rule', 'delete', { before, after: null }, now);
    return { id, deleted: true };
  });
}

/** IP rules need the enterprise plan; those that stand when it ends stay in force, and can be deleted (section 4). */
function checkPlan(db: Database, actor: Actor, ruleType: RuleType): void {
  if (kindOf(ruleType) !== 'ip_cidrs' || getOrganization(db, actor.organizationId).plan === 'enterprise') return;
  throw permissionDenied('IP rules are part of the enterprise plan only.');
}

const warningsOf = (db: Database, { organizationId }: Actor, rule: CanonicalRule, world: RuleWorld): string[] =>
  ruleWarnings(rule, world, readCustomNames(db, organizationId));

const merged = (rule: store.RuleRecord, patch: RulePatch): RuleContent =>
  readRule({
    ruleType: rule.ruleType,
    ruleValue: rule.ruleValue,
    status: rule.status,
    mode: rule.mode,
    description: rule.description,
    ...patch,
  });

const stored = ({ canonical, ...content }: RuleContent): Omit<store.NewRule, 'id'> => ({
  ...content,
  canonicalValue: canonical.ruleValue,
});

function view(record: store.RuleRecord): IamRule {
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
    organizationId: record.scope === 'organization' ? record.subjectId : null,
  };
}

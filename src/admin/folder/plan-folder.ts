import { hash } from 'node:crypto';
import { KnownNames, ruleWarnings } from '../../core/known-names.ts';
import { ApiError, type FieldFault, invalidField, phrase } from '../../domain/errors.ts';
import { type RuleContent, readRule, storedRule } from '../../domain/rule-content.ts';
import type { PolicyFolder } from '../../generated/types.ts';
import type { Database } from '../../store/db/database.ts';
import { readCustomNames } from '../../store/providers/custom-names.ts';
import { listRules } from '../../store/rules/rules.ts';
import { getOrganization } from '../../store/tenants/tenants.ts';
import { type Actor, checkManagesOrganization } from '../audit/audit-trail.ts';
import { checkPlan, type RuleWorld } from '../rules/iam-rules.ts';
import { checkBounds } from '../rules/rule-edits.ts';
import {
  checkRulesChangeable,
  getRuleSubject,
  listRuleOwners,
  type RuleOwner,
  type RuleSubject,
} from '../rules/rule-owner.ts';
import { OwnerNames, rulePointer, statedOwners } from './live-folder.ts';
import { matchRules, type RuleMatch } from './match-rules.ts';

/** Default name of a folder that states none. */
const DEFAULT_SOURCE = 'policy';

export const sourceOf = ({ source = DEFAULT_SOURCE }: PolicyFolder): string => source;

export interface PlanOptions {
  readonly prune: boolean;
  /** The rule revision, and the digest of the folder, that a plan was made for that someone has reviewed. */
  readonly reviewed?: { readonly ruleRevision?: number | undefined; readonly digest?: string | undefined };
}

/** Something about a place in the folder. */
export interface PlacedText {
  /** JSON pointer into the folder's document. */
  readonly pointer: string;
  readonly text: string;
}

export type PlannedRule = RuleMatch & { readonly owner: RuleOwner; readonly subject: RuleSubject };

/** The effect of applying a folder, for one revision of the organization's rules. */
export interface FolderPlan {
  readonly source: string;
  /** SHA-256 of what the folder states, hex. */
  readonly digest: string;
  readonly prune: boolean;
  readonly ruleRevision: number;
  readonly changes: readonly PlannedRule[];
  readonly unchanged: number;
  readonly warnings: readonly PlacedText[];
}

/** A fault at a place, or, if `refused`, an action that the actor may not do there. */
interface FolderFault extends PlacedText {
  readonly refused: boolean;
  readonly fault: FieldFault | undefined;
}

/** A folder that cannot be applied: 400, or 403, for its first fault; all are named. */
export class FolderFaults extends ApiError {
  readonly faults: readonly PlacedText[];

  constructor({ pointer, text, refused, fault }: FolderFault, faults: readonly PlacedText[]) {
    super(refused ? 403 : 400, refused ? 'permission_denied' : 'invalid_request', text, { param: pointer, fault });
    this.faults = faults;
  }
}

/**
 * Plans an apply of the folder to the organization's present rules, after all checks of an ordinary write; writes nothing. 403
 * for developers, 409 when the rules or the folder are not those that were reviewed.
 * @throws FolderFaults naming all faults
 */
export function readFolderPlan(
  db: Database,
  actor: Actor,
  folder: PolicyFolder,
  { prune, reviewed = {} }: PlanOptions,
  world: RuleWorld,
): FolderPlan {
  checkManagesOrganization(actor);
  const { ruleRevision } = getOrganization(db, actor.organizationId);
  const [source, digest] = [sourceOf(folder), digestOf(folder)];
  checkReviewed(reviewed, { ruleRevision, digest });
  const faults = new Faults();
  const owners = readOwners(db, actor, folder, faults);
  const meant = new Set(owners.map(({ subject }) => subject.id));
  const left = [source, ...(prune ? [null] : [])].flatMap((managedBy) => listRuleOwners(db, actor, managedBy));
  for (const owner of left) {
    const subject = getRuleSubject(db, actor, owner);
    if (meant.has(subject.id)) continue;
    meant.add(subject.id);
    owners.push({ pointer: '', owner, subject, rules: new Map() });
  }
  const plans = owners.map((each) => planOwner(db, actor, each, { source, prune }, faults));
  faults.throwFirst();
  const names = new KnownNames(world.catalog, readCustomNames(db, actor.organizationId));
  return {
    source,
    digest,
    prune,
    ruleRevision,
    changes: plans.flatMap(({ changes }) => changes),
    unchanged: plans.reduce((sum, { unchanged }) => sum + unchanged, 0),
    warnings: plans.flatMap(({ pointer, changes }) =>
      changes.flatMap(({ name, after }) =>
        after === null
          ? []
          : ruleWarnings(after.canonical, names, world.trustedProxies).map((text) => ({
              pointer: rulePointer(pointer, name ?? ''),
              text,
            })),
      ),
    ),
  };
}

/** Someone with the rules that the folder states. */
interface ReadOwner {
  readonly pointer: string;
  readonly owner: RuleOwner;
  readonly subject: RuleSubject;
  readonly rules: ReadonlyMap<string, RuleContent>;
}

function readOwners(db: Database, actor: Actor, folder: PolicyFolder, faults: Faults): ReadOwner[] {
  const found = new Map<string, ReadOwner>();
  for (const { pointer, owner: named, rules: written } of statedOwners(
    folder,
    new OwnerNames(db, actor.organizationId),
  )) {
    faults.guard(pointer, () => {
      const owner = named();
      const subject = getRuleSubject(db, actor, owner);
      checkRulesChangeable(actor, subject);
      const other = found.get(subject.id);
      if (other !== undefined) throw invalidField(pointer, `means the same as ${other.pointer}`);
      const rules = new Map<string, RuleContent>();
      for (const [name, rule] of Object.entries(written)) {
        faults.guard(rulePointer(pointer, name), () => rules.set(name, readRule(rule)), true);
      }
      found.set(subject.id, { pointer, owner, subject, rules });
    });
  }
  return [...found.values()];
}

function planOwner(
  db: Database,
  actor: Actor,
  { pointer, owner, subject, rules }: ReadOwner,
  claim: { readonly source: string; readonly prune: boolean },
  faults: Faults,
): { pointer: string; changes: PlannedRule[]; unchanged: number } {
  const present = listRules(db, actor.organizationId, subject.id);
  const { changes, unchanged, others } = matchRules(present, rules, claim);
  const planned = { pointer, changes: changes.map((change) => ({ ...change, owner, subject })), unchanged };
  if (changes.length === 0) return planned;
  faults.guard(pointer, () => {
    checkRulesChangeable(actor, subject);
    for (const { after } of changes) if (after !== null) checkPlan(db, actor, after.ruleType);
    checkBounds([...others.map(storedRule), ...[...rules.values()].map(({ canonical }) => canonical)]);
  });
  return planned;
}

/** Collects what is wrong, so that all of it is named at once. */
class Faults {
  readonly #found: FolderFault[] = [];

  /** Does some work about a place; what it throws is a fault there. @param isBody whether its `param` leads on from there */
  guard(pointer: string, work: () => void, isBody = false): void {
    try {
      work();
    } catch (error) {
      if (!(error instanceof ApiError) || error.status >= 500) throw error;
      const at = isBody ? `${pointer}${error.param ?? ''}` : pointer;
      const fault = at === '' ? undefined : faultAt(error, pointer, at);
      const text = fault === undefined ? error.message : phrase(fault);
      this.#found.push({ pointer: at, text, refused: error.status === 403, fault });
    }
  }

  throwFirst(): void {
    const [first] = this.#found;
    if (first !== undefined) throw new FolderFaults(first, this.#found);
  }
}

/** The fault with its place in the folder; the error may name that already, or a place below `pointer`, or none. */
function faultAt({ message, fault }: ApiError, pointer: string, at: string): FieldFault {
  if (fault?.pointer === at) return fault;
  return fault === undefined || fault.pointer === ''
    ? { pointer: at, quoted: '', predicate: `: ${message}` }
    : { ...fault, pointer: `${pointer}${fault.pointer}` };
}

function checkReviewed(
  reviewed: NonNullable<PlanOptions['reviewed']>,
  { ruleRevision, digest }: { readonly ruleRevision: number; readonly digest: string },
): void {
  if (reviewed.ruleRevision !== undefined && reviewed.ruleRevision !== ruleRevision) {
    throw new ApiError(
      409,
      'rules_changed',
      `The rules have changed since the plan was made: it is for their revision ${reviewed.ruleRevision}, and now is ${ruleRevision}. Plan again, review what it says now, and apply that.`,
    );
  }
  if (reviewed.digest !== undefined && reviewed.digest !== digest) {
    throw new ApiError(
      409,
      'folder_changed',
      'The folder does not state what it did when the plan was made. Plan again, review what it says now, and apply that.',
    );
  }
}

/** Equal for folders that state the same, however they are spread over files. */
const digestOf = (folder: PolicyFolder): string => hash('sha256', JSON.stringify(sorted(folder)));

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, each]): [string, unknown] => [name, sorted(each)]);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

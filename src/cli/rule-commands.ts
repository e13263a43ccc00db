import { type Command, InvalidArgumentError, Option } from 'commander';
import { listEvidence, readEvidenceRequest } from '../admin/log/log-reader.ts';
import {
  changeRule,
  createRule,
  deleteRule,
  getRule,
  listRules,
  readRuleCreation,
  readRuleDeletion,
  readRulePlan,
} from '../admin/rules/iam-rules.ts';
import { listRuleOwners, type RuleOwner } from '../admin/rules/rule-owner.ts';
import { factsOf, kindOf, RULE_TYPES } from '../domain/iam-rule.ts';
import type {
  IamRule,
  RuleChangeAnswer,
  RuleCreateAnswer,
  RuleDeletion,
  RuleEvidence,
  RuleType,
} from '../generated/types.ts';
import type { PageRequest } from '../store/db/records.ts';
import { findNames } from '../store/tenants/tenants.ts';
import { groupId, keyId, memberId, ruleOwner } from './record-references.ts';
import { runJudged, showEvidence, showRemovedRule, showRule, showRuleChange, showRules } from './rule-output.ts';
import { type CommonOptions, common, listing, named } from './terminal/options.ts';
import { confirm, print, printJson } from './terminal/output.ts';
import { conditionOptions, UsageError } from './terminal/usage-faults.ts';
import { type Environment, inWorkspace, ruleWriteOf, type Workspace } from './workspace.ts';

interface OwnerOptions extends CommonOptions {
  readonly key?: string;
  readonly member?: string;
  readonly group?: string;
  readonly organization?: true;
}

interface RuleOptions {
  readonly mode?: string;
  readonly status?: string;
  readonly description?: string;
}

interface FailOptions {
  readonly failOnNewAccess?: true;
}

const FAIL = ['--fail-on-new-access', 'refuse a change that permits what was not permitted'] as const;

function parseRuleType(text: string): RuleType {
  const type = RULE_TYPES.find((known) => known === text);
  if (type === undefined) throw new InvalidArgumentError(`It must be one of ${RULE_TYPES.join(', ')}.`);
  return type;
}

const withOwnerOptions = (command: Command): Command =>
  command
    .addOption(
      new Option('--key <key>', "a key's rules: its id, masked token or description").conflicts([
        'member',
        'group',
        'organization',
      ]),
    )
    .addOption(new Option('--member <id|e-mail>', "a member's rules").conflicts(['group', 'organization']))
    .addOption(new Option('--group <group>', "a group's rules: its id or name").conflicts('organization'))
    .option('--organization', "the organization's rules");

function withRuleOptions(command: Command, ...more: string[]): Command {
  command
    .addOption(new Option('--mode <mode>', 'enforce, or report only').choices(['enforce', 'report']))
    .addOption(new Option('--status <status>', 'whether the rule counts').choices(['active', 'inactive']))
    .option('--description <text>', 'label of the rule');
  for (const { fields } of Object.values(conditionOptions(...more))) {
    for (const option of Object.values(fields)) command.addOption(option);
  }
  return command;
}

function ownerOf(workspace: Workspace, { key, member, group, organization }: OwnerOptions): RuleOwner | undefined {
  if (key !== undefined) return { kind: 'key', key: keyId(workspace, key) };
  if (member !== undefined) return { kind: 'member', member: memberId(workspace, member) };
  if (group !== undefined) return { kind: 'group', group: groupId(workspace, group) };
  return organization ? { kind: 'organization' } : undefined;
}

type AddOptions = OwnerOptions & RuleOptions & FailOptions;
type UpdateOptions = CommonOptions & RuleOptions & FailOptions & { readonly ruleType?: RuleType };
type RemoveOptions = CommonOptions & FailOptions;

/** In an update: the condition goes. */
const NONE = 'none';

/** The body of a change. @param present the rule's type now */
function updateOf(present: RuleType, entries: readonly string[], options: UpdateOptions): object {
  const { ruleType, failOnNewAccess } = options;
  const value = ruleValue(ruleType ?? present, entries, options);
  return {
    ...(ruleType === undefined ? {} : { ruleType }),
    ...(value === undefined ? {} : { ruleValue: withoutNone(value) }),
    ...otherFields(options),
    ...named({ failOnNewAccess }),
  };
}

const withoutNone = (value: object): object =>
  Object.fromEntries(Object.entries(value).map(([name, each]) => [name, each === NONE ? null : each]));

const CONDITIONS = Object.entries(conditionOptions()).map(([kind, { called, fields }]) => {
  const options = Object.entries(fields);
  const names = options.map(([, { flags }]) => flags.split(' ', 1).join(''));
  return { kind, called, options, names: new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(names) };
});

/** The parts that a rule's value needs. */
const needsOf = (type: RuleType): string =>
  CONDITIONS.find(({ kind }) => kind === kindOf(type))?.names ?? 'at least one entry';

/** `ruleValue` from the entries and the options of conditions, or undefined when none is given. */
function ruleValue(type: RuleType, entries: readonly string[], given: RuleOptions): object | undefined {
  const stated = CONDITIONS.flatMap(({ kind, called, options }) => {
    const fields = options.map(([field, option]) => [field, Reflect.get(given, option.attributeName())] as const);
    const named = fields.filter(([, value]) => value !== undefined);
    return named.length === 0 ? [] : { kind, called, value: Object.fromEntries(named) };
  });
  const { list } = factsOf(type);
  if (list === null && entries.length > 0) {
    throw new UsageError(`A rule of type ${type} takes ${needsOf(type)}, not entries.`);
  }
  const stray = stated.find(({ kind }) => kind !== kindOf(type));
  if (stray !== undefined) {
    const { called, kind } = stray;
    throw new UsageError(`${called} go with allow_${kind} and deny_${kind}, not with ${type}.`);
  }
  if (list === null) return stated[0]?.value;
  return entries.length === 0 ? undefined : { [list]: entries };
}

const otherFields = ({ mode, status, description }: RuleOptions): object => ({
  ...(mode === undefined ? {} : { mode }),
  ...(status === undefined ? {} : { status }),
  ...(description === undefined ? {} : { description }),
});

const RULE_EXAMPLES = `
Examples:
  $ portcullis rules add --key CI deny_models 'openai/*' claude-opus-4
  $ portcullis rules add --member dev@example.com allow_pricing --type free
  $ portcullis rules add --organization allow_ip_cidrs 10.0.0.0/8 --mode report`;

/** `portcullis rules …`. */
export function ruleCommands(program: Command, env: Environment): void {
  const rules = program
    .command('rules')
    .description('Create, list and change the IAM rules of keys, members, groups and the organization.');

  withRuleOptions(withOwnerOptions(common(rules.command('add'))))
    .description(
      'Add a rule to a key, a member, a group or the organization; it holds from the next call on. What the rules newly permit because of it is shown: an allow rule next to others of its type extends them.',
    )
    .argument('<ruleType>', RULE_TYPES.join(', '), parseRuleType)
    .argument('[entries...]', 'models (also prefixes such as openai/*), providers, CIDR ranges or tags')
    .option(...FAIL)
    .addHelpText('after', RULE_EXAMPLES)
    .action(async (type: RuleType, entries: string[], options: AddOptions) => {
      const value = ruleValue(type, entries, options);
      if (value === undefined) throw new UsageError(`A rule of type ${type} needs ${needsOf(type)}.`);
      const { org, failOnNewAccess } = options;
      const body = { ruleType: type, ruleValue: value, ...otherFields(options), ...named({ failOnNewAccess }) };
      const ownerIn = (workspace: Workspace): RuleOwner => {
        const owner = ownerOf(workspace, options);
        if (owner !== undefined) return owner;
        throw new UsageError('Name the owner of the rule: --key, --member, --group or --organization.');
      };
      showRule(await runRuleCreation(env, org, ownerIn, body), options);
    });

  withOwnerOptions(listing(rules.command('list')))
    .description('List the rules of one owner, or all of them.')
    .action(async (options: OwnerOptions) => {
      showRules(await inWorkspace(env, 'read', options.org, (workspace) => list(workspace, options)), options);
    });

  changeCommands(rules, env);
  evidenceCommands(rules, env);
}

const UPDATE_EXAMPLES = `
Examples:
  $ portcullis rules update rule_01… --max-input-price 5 --max-output-price none
  $ portcullis rules update rule_01… 'openai/*' claude-opus-4 --fail-on-new-access

Entries replace all entries. Of a price what is not named stays, and none takes one away.`;

function changeCommands(rules: Command, env: Environment): void {
  withRuleOptions(common(rules.command('update').argument('<ruleId>')), NONE)
    .description(
      'Change a rule; what you leave out stays as it is. The rule is shown before and after, with what the rules newly permit because of the change: exactly, for every key and member, credential or not.',
    )
    .argument('[entries...]', 'the new entries, all of them')
    .addOption(new Option('--rule-type <ruleType>', RULE_TYPES.join(', ')).argParser(parseRuleType))
    .option(...FAIL)
    .addHelpText('after', UPDATE_EXAMPLES)
    .action(async (id: string, entries: string[], options: UpdateOptions) => {
      const bodyFor = ({ ruleType }: IamRule): object => updateOf(ruleType, entries, options);
      showRuleChange(await runRuleUpdate(env, options.org, id, bodyFor), options);
    });

  common(rules.command('remove').alias('delete').argument('<ruleId>'))
    .description(
      'Remove a rule; it binds nothing from the next call on. What the rules newly permit because of it is shown: exactly, credential or not.',
    )
    .option(...FAIL)
    .action(async (id: string, options: RemoveOptions) => {
      showRemovedRule(await runRuleDeletion(env, options.org, id, options.failOnNewAccess === true), options);
    });
}

/** Rules of one owner fit into one page. */
function list(workspace: Workspace, options: OwnerOptions): IamRule[] {
  const { db, actor } = workspace;
  const owner = ownerOf(workspace, options);
  const owners = owner === undefined ? listRuleOwners(db, actor) : [owner];
  return owners.flatMap((each) => listRules(db, actor, each, { limit: 200 }).rules);
}

/** Makes a rule. @param body a `RuleCreateRequest` */
const runRuleCreation = (
  env: Environment,
  org: string | undefined,
  ownerIn: (workspace: Workspace) => RuleOwner,
  body: object,
): Promise<RuleCreateAnswer> =>
  runJudged(env, org, {
    plan: (workspace) => readRuleCreation(workspace.db, workspace.actor, ownerIn(workspace), body),
    write: (workspace, judged) => {
      const { db, actor } = workspace;
      return createRule(db, actor, ownerIn(workspace), body, ruleWriteOf(workspace), judged);
    },
  });

/** Changes a rule. @param bodyFor makes a `RulePatch` for the rule as it is */
function runRuleUpdate(
  env: Environment,
  org: string | undefined,
  id: string,
  bodyFor: (present: IamRule) => object,
): Promise<RuleChangeAnswer> {
  const steps = (workspace: Workspace) => {
    const { db, actor } = workspace;
    const owner = ruleOwner(workspace, id);
    const write = ruleWriteOf(workspace);
    return { db, actor, owner, write, body: bodyFor(getRule(db, actor, owner, id, write).rule) };
  };
  return runJudged(env, org, {
    plan: (workspace) => {
      const { db, actor, owner, body } = steps(workspace);
      return readRulePlan(db, actor, owner, id, body);
    },
    write: (workspace, judged) => {
      const { db, actor, owner, body, write } = steps(workspace);
      return changeRule(db, actor, owner, id, body, write, judged);
    },
  });
}

/** Removes a rule. */
const runRuleDeletion = (
  env: Environment,
  org: string | undefined,
  id: string,
  failOnNewAccess: boolean,
): Promise<RuleDeletion> =>
  runJudged(env, org, {
    plan: (workspace) => {
      const { db, actor } = workspace;
      return readRuleDeletion(db, actor, ruleOwner(workspace, id), id, failOnNewAccess);
    },
    write: (workspace, judged) => {
      const { db, actor, now } = workspace;
      return deleteRule(db, actor, ruleOwner(workspace, id), id, failOnNewAccess, now, judged);
    },
  });

type EvidenceOptions = CommonOptions & PageRequest;
type PromoteOptions = CommonOptions & { readonly yes?: true; readonly failOnNewAccess?: true };

function parseLimit(text: string): number {
  const limit = /^[1-9][0-9]{0,2}$/.test(text) ? Number(text) : 201;
  if (limit > 200) throw new InvalidArgumentError('It must be a whole number from 1 to 200.');
  return limit;
}

const EVIDENCE_HELP = `
A decision counts for the rule when, with all rules in mode report in force, a candidate that was permitted would be denied and the
rule is among those that deny it, or a candidate that was denied would be permitted and the rule allows it. WOULD BE is the outcome of
the call then. What the rule reported before its type or value was changed is left out.`;

const PROMOTE_HELP = `
It is shown what the rule would have changed; then, on a terminal, you are asked. Elsewhere nothing is changed without --yes.`;

/** Decisions that a promotion shows. */
const MOST_EXAMPLES = 10;

/** `portcullis rules evidence` and `rules promote`. */
function evidenceCommands(rules: Command, env: Environment): void {
  common(rules.command('evidence').argument('<ruleId>'))
    .description('Show the decisions that a rule in mode report would have changed, newest first.')
    .addOption(new Option('--limit <n>', 'how many at most, 1 to 200').argParser(parseLimit).default(50))
    .option('--cursor <cursor>', 'where the page before ended')
    .addHelpText('after', EVIDENCE_HELP)
    .action(async (id: string, options: EvidenceOptions) => {
      const { evidence, names } = await readEvidence(env, id, options.org, options);
      showEvidence(evidence, names, options);
    });

  common(rules.command('promote').argument('<ruleId>'))
    .description('Enforce a rule that is in mode report, after a look at what it would have changed.')
    .option('--yes', 'do not ask')
    .option('--fail-on-new-access', 'refuse it when the rule permits what was not permitted')
    .addHelpText('after', PROMOTE_HELP)
    .action((id: string, options: PromoteOptions) => promote(env, id, options));
}

interface Evidence {
  readonly evidence: RuleEvidence;
  /** Names of keys, by their ids. */
  readonly names: ReadonlyMap<string, string>;
}

const readEvidence = (env: Environment, id: string, org: string | undefined, page: PageRequest): Promise<Evidence> =>
  inWorkspace(env, 'read', org, (workspace) => {
    const { db, actor } = workspace;
    const evidence = listEvidence(db, readEvidenceRequest(db, actor, ruleOwner(workspace, id), id, page));
    const keys = evidence.decisions.map(({ keyId }) => keyId);
    return { evidence, names: findNames(db, actor.organizationId, keys) };
  });

async function promote(env: Environment, id: string, options: PromoteOptions): Promise<void> {
  const { json, org, yes, failOnNewAccess } = options;
  const { evidence, names } = await readEvidence(env, id, org, { limit: MOST_EXAMPLES });
  if (!json) showEvidence(evidence, names, options);
  if (!evidence.rule.reportOnly) throw new Error('Only an active rule in mode report can be promoted.');
  if (!yes && !(await confirm('\nEnforce it?')))
    throw new Error('Nothing was changed. To enforce the rule, pass --yes.');
  const bodyFor = ({ updatedAt }: IamRule): object => {
    if (updatedAt !== evidence.rule.updatedAt) throw new Error('Nothing was changed: the rule has changed meanwhile.');
    return { mode: 'enforce', ...(failOnNewAccess ? { failOnNewAccess } : {}) };
  };
  const change = await runRuleUpdate(env, org, id, bodyFor);
  if (json) {
    printJson({ evidence, change });
    return;
  }
  print('');
  showRuleChange(change, options);
}

import { type Command, InvalidArgumentError, Option } from 'commander';
import { listRules } from '../../admin/rules/iam-rules.ts';
import { listRuleOwners, type RuleOwner } from '../../admin/rules/rule-owner.ts';
import { factsOf, kindOf, RULE_TYPES } from '../../domain/iam-rule.ts';
import type { IamRule, RuleType } from '../../generated/types.ts';
import { showRemovedRule, showRule, showRuleChange, showRules } from '../output/rule-output.ts';
import { groupId, keyId, memberId } from '../run/references.ts';
import { runRuleCreation, runRuleDeletion, runRuleUpdate } from '../run/run-rule-writes.ts';
import { type Environment, inWorkspace, type Workspace } from '../run/workspace.ts';
import { type CommonOptions, common, listing, named } from '../terminal/common-options.ts';
import { conditionOptions } from '../terminal/rule-options.ts';
import { UsageError } from '../terminal/usage-error.ts';
import { evidenceCommands } from './evidence-commands.ts';

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

const owned = (command: Command): Command =>
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

function described(command: Command, ...more: string[]): Command {
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

/** What the value of a rule is made of. */
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

const EXAMPLES = `
Examples:
  $ portcullis rules add --key CI deny_models 'openai/*' claude-opus-4
  $ portcullis rules add --member dev@example.com allow_pricing --type free
  $ portcullis rules add --organization allow_ip_cidrs 10.0.0.0/8 --mode report`;

/** `portcullis rules …`. */
export function ruleCommands(program: Command, env: Environment): void {
  const rules = program
    .command('rules')
    .description('Create, list and change the IAM rules of keys, members, groups and the organization.');

  described(owned(common(rules.command('add'))))
    .description(
      'Add a rule to a key, a member, a group or the organization; it holds from the next call on. What the rules newly permit because of it is shown: an allow rule next to others of its type extends them.',
    )
    .argument('<ruleType>', RULE_TYPES.join(', '), parseRuleType)
    .argument('[entries...]', 'models (also prefixes such as openai/*), providers, CIDR ranges or tags')
    .option(...FAIL)
    .addHelpText('after', EXAMPLES)
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

  owned(listing(rules.command('list')))
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
  described(common(rules.command('update').argument('<ruleId>')), NONE)
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

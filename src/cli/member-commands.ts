import { isIPv6 } from 'node:net';
import type { InspectColor } from 'node:util';
import { type Command, Option } from 'commander';
import { acceptInvitation } from '../admin/sign-in/accept-invitation.ts';
import { createSignInLink, type SignInLink } from '../admin/sign-in/sign-in-links.ts';
import { createInvitation, revokeInvitation } from '../admin/tenants/invitations.ts';
import { addMember, changeMember, removeMember } from '../admin/tenants/members.ts';
import type { Config } from '../config/config.ts';
import { invitationUrl, signInUrl } from '../domain/identity.ts';
import { systemClock, type TtlUnit } from '../domain/time.ts';
import type {
  Deletion,
  InvitationAnswer,
  InvitationRecord,
  InvitationStatus,
  MemberAnswer,
  MemberRecord,
} from '../generated/types.ts';
import { showRemoved } from './provider-records.ts';
import { everyInvitation, everyMember, invitationId, memberId } from './record-references.ts';
import { FAIL_ON_NEW_ACCESS, type MustNotWiden, runRehearsed } from './rule-output.ts';
import { requireToken, type TokenOptions, takingToken } from './terminal/arguments.ts';
import { limitedByMinute, type MinuteOptions, minuteColumn, minuteFields } from './terminal/limit-options.ts';
import { type CommonOptions, common, type Duration, listing, named, orNone, parseTtl } from './terminal/options.ts';
import { type Cell, extra, type Format, free, print, printJson, printTable, timeText } from './terminal/output.ts';
import { UsageError } from './terminal/usage-faults.ts';
import { type Environment, inDatabase, inWorkspace, secretsOf } from './workspace.ts';

const ROLES = ['owner', 'admin', 'developer'] as const;
const MEMBER_ARGUMENT = ['<member>', 'the membership id or e-mail'] as const;

interface InviteOptions extends CommonOptions {
  readonly role: string;
  readonly ttl?: Duration<TtlUnit>;
}

interface AddOptions extends CommonOptions {
  readonly role: string;
  readonly name?: string;
}

interface UpdateOptions extends CommonOptions, MustNotWiden, MinuteOptions {
  readonly name?: string;
  readonly role?: string;
}

interface AcceptOptions extends TokenOptions {
  readonly name?: string;
  readonly json?: true;
}

const ACCEPT_EXAMPLES = `
The token is read from standard input or from an environment variable, never from an argument: everyone on the machine
can see those.

Examples:
  $ portcullis members accept --name Ada --token-stdin < token.txt
  $ portcullis members accept --token-env INVITATION`;

/** `portcullis members …`. */
export function memberCommands(program: Command, env: Environment): void {
  const members = program.command('members').description('Add, invite, list, change and remove members.');

  common(members.command('add').argument('<e-mail>', 'address of the new member'))
    .description('Add a member at once, without an invitation.')
    .addOption(new Option('--role <role>', 'the role of the new member').choices(ROLES).default('developer'))
    .option('--name <text>', 'what people call the new member')
    .action(async (email: string, { role, name, ...options }: AddOptions) => {
      const added = await inWorkspace(env, 'write', options.org, ({ db, actor, now }) =>
        addMember(db, actor, named({ email, role, name }), now),
      );
      showMember(added, options);
    });

  listing(members.command('list'))
    .description('List the members, newest first.')
    .action(async (options: CommonOptions) => {
      showMembers(await inWorkspace(env, 'read', options.org, everyMember), options);
    });

  limitedByMinute(common(members.command('update').argument(...MEMBER_ARGUMENT)))
    .description('Change the name, the role or the limits a minute of a member.')
    .option('--name <text>', 'new name; "none" removes it')
    .addOption(new Option('--role <role>', 'new role').choices(ROLES))
    .option(...FAIL_ON_NEW_ACCESS)
    .action(async (member: string, options: UpdateOptions) => {
      const body = { ...named({ name: orNone(options.name), role: options.role }), ...minuteFields(options) };
      if (Object.keys(body).length === 0) throw new UsageError('Say what to change: --name, --role, --rpm, --tpm.');
      const changed = await runRehearsed(env, options, (workspace) =>
        changeMember(workspace.db, workspace.actor, memberId(workspace, member), body, workspace.now),
      );
      showMember(changed, options);
    });

  common(members.command('remove').argument(...MEMBER_ARGUMENT))
    .description('Remove a member: their keys are disabled, their master keys end.')
    .action(async (member: string, options: CommonOptions) => {
      const removed = await inWorkspace(env, 'write', options.org, (workspace) =>
        removeMember(workspace.db, workspace.actor, memberId(workspace, member), workspace.now),
      );
      showRemoved(removed, options);
    });

  common(members.command('sign-in-link').argument(...MEMBER_ARGUMENT))
    .description('Make a link with which a member signs in once, within 24 hours, and can set a password.')
    .action(async (member: string, options: CommonOptions) => {
      const { link, url } = await inWorkspace(env, 'write', options.org, ({ db, actor, now, pepper, config }) => {
        const made = createSignInLink(db, actor, member, { now, pepper: pepper() });
        return { link: made, url: signInUrl(gatewayAddress(config), made.token) };
      });
      showSignInLink(link, url, options);
    });

  invitationCommands(members, env);
}

/** The commands about those who are to become members. */
function invitationCommands(members: Command, env: Environment): void {
  common(members.command('invite').argument('<e-mail>', 'address of who is to become a member'))
    .description('Invite a person. The token, and the link that accepts it in a browser, are shown once, now.')
    .addOption(new Option('--role <role>', 'the role that the member will have').choices(ROLES).default('developer'))
    .addOption(
      new Option('--ttl <length>', 'how long it can be accepted, at most 30days (default: 7days)').argParser(parseTtl),
    )
    .action(async (email: string, { role, ttl, ...options }: InviteOptions) => {
      const body = named({ email, role, ttl });
      const { invited, address } = await inWorkspace(
        env,
        'write',
        options.org,
        ({ db, actor, now, pepper, config }) => ({
          invited: createInvitation(db, actor, body, { now, pepper: pepper() }),
          address: gatewayAddress(config),
        }),
      );
      showNewInvitation(invited, address, options);
    });

  listing(members.command('invitations'))
    .description('List the invitations with their status, newest first.')
    .action(async (options: CommonOptions) => {
      showInvitations(await inWorkspace(env, 'read', options.org, everyInvitation), options);
    });

  common(members.command('revoke').argument('<invitation>', "the invitation's id, masked token or e-mail"))
    .description('Revoke an invitation that was not accepted.')
    .action(async (invitation: string, options: CommonOptions) => {
      const revoked = await inWorkspace(env, 'write', options.org, (workspace) =>
        revokeInvitation(workspace.db, workspace.actor, invitationId(workspace, invitation), workspace.now),
      );
      showRevoked(revoked, options);
    });

  takingToken(members.command('accept'), 'the token of the invitation')
    .description('Accept an invitation by its token and become a member.')
    .option('--name <text>', 'what people call the new member')
    .option('--json', 'print JSON')
    .addHelpText('after', ACCEPT_EXAMPLES)
    .action(async ({ name, json, ...options }: AcceptOptions) => {
      const token = await requireToken(options, env);
      const accepted = await inDatabase(env, 'write', (db, config) =>
        acceptInvitation(db, named({ token, name }), {
          now: systemClock.now(),
          peppers: secretsOf(config).peppers,
          by: 'cli',
        }),
      );
      showMember(accepted, json ? { json } : {});
    });
}

/**
 * The gateway's address for a browser: `PUBLIC_URL`, or on this machine. Empty: its port is chosen at the start, and only the
 * running gateway knows it.
 */
function gatewayAddress({ publicUrl, gateway: { host, port } }: Pick<Config, 'publicUrl' | 'gateway'>): string {
  if (publicUrl !== undefined) return publicUrl;
  if (port === 0) return '';
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `http://${isIPv6(reachable) ? `[${reachable}]` : reachable}:${port}`;
}

const MEMBER_TITLES = [free('NAME'), free('E-MAIL'), 'ID', 'ROLE', ...extra('SINCE')];

const memberRow = (member: MemberRecord): Cell[] => [
  { text: member.name ?? '-' },
  { text: member.email },
  { text: member.id },
  { text: member.role },
  { text: timeText(member.createdAt) },
];

function printMembers(members: readonly MemberRecord[], format: Format): void {
  const minute = minuteColumn(members);
  const rows = members.map((member) => [...memberRow(member), ...minute.cells(member)]);
  printTable([...MEMBER_TITLES, ...minute.titles], rows, 'There are no members.', format);
}

function showMembers(members: readonly MemberRecord[], format: Format): void {
  if (format.json) printJson({ members, nextCursor: null });
  else printMembers(members, format);
}

function showMember(answer: MemberAnswer, { json }: Format): void {
  if (json) printJson(answer);
  else printMembers([answer.member], { wide: true });
}

const STATUS_COLOURS: Readonly<Record<InvitationStatus, InspectColor>> = {
  pending: 'yellow',
  accepted: 'green',
  revoked: 'red',
  expired: 'red',
};

const INVITATION_TITLES = [
  ...[free('E-MAIL'), 'ID', 'ROLE', 'STATUS', 'EXPIRES'],
  ...extra(free('INVITED BY'), 'TOKEN'),
];

const invitationRow = (invitation: InvitationRecord): Cell[] => [
  { text: invitation.email },
  { text: invitation.id },
  { text: invitation.role },
  { text: invitation.status, colour: STATUS_COLOURS[invitation.status] },
  { text: timeText(invitation.expiresAt) },
  { text: invitation.invitedByEmail ?? '-' },
  { text: invitation.maskedToken },
];

function showInvitations(invitations: readonly InvitationRecord[], format: Format): void {
  if (format.json) printJson({ invitations, nextCursor: null });
  else printTable(INVITATION_TITLES, invitations.map(invitationRow), 'There are no invitations.', format);
}

/** A link whose token is shown once. */
function showSignInLink(link: SignInLink, url: string, { json }: Format): void {
  if (json) printJson({ signInLink: { ...link, url } });
  else print(`${url}\n\nThis link is shown once, now. It signs ${link.email} in once, until ${link.expiresAt}.`);
}

/** An invitation whose token is shown once. @param address of the gateway */
function showNewInvitation(answer: InvitationAnswer, address: string, { json }: Format): void {
  const { id, email, role, token = '', expiresAt } = answer.invitation;
  const url = invitationUrl(address, token);
  if (json) {
    printJson({ invitation: { ...answer.invitation, url } });
    return;
  }
  print(
    `${id}\n\n  ${token}\n\nThis token is shown once, now. Until ${expiresAt} it makes ${email} a member with the role\n` +
      `${role}, in a browser:\n\n  ${url}\n\n` +
      'or by this command, which reads the token from standard input:\n\n  portcullis members accept --token-stdin',
  );
}

function showRevoked(deletion: Deletion, { json }: Format): void {
  if (json) printJson(deletion);
  else print(`Revoked ${deletion.id}.`);
}

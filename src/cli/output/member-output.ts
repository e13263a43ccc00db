import type { InspectColor } from 'node:util';
import type { SignInLink } from '../../admin/sign-in/sign-in-links.ts';
import { invitationUrl } from '../../domain/page-links.ts';
import type {
  Deletion,
  InvitationAnswer,
  InvitationRecord,
  InvitationStatus,
  MemberAnswer,
  MemberRecord,
} from '../../generated/types.ts';
import { type Cell, extra, type Format, free, print, printJson, printTable, timeText } from '../terminal/output.ts';
import { minuteColumn } from './limit-output.ts';

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

export function showMembers(members: readonly MemberRecord[], format: Format): void {
  if (format.json) printJson({ members, nextCursor: null });
  else printMembers(members, format);
}

export function showMember(answer: MemberAnswer, { json }: Format): void {
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

export function showInvitations(invitations: readonly InvitationRecord[], format: Format): void {
  if (format.json) printJson({ invitations, nextCursor: null });
  else printTable(INVITATION_TITLES, invitations.map(invitationRow), 'There are no invitations.', format);
}

/** A link whose token is shown once. */
export function showSignInLink(link: SignInLink, url: string, { json }: Format): void {
  if (json) printJson({ signInLink: { ...link, url } });
  else print(`${url}\n\nThis link is shown once, now. It signs ${link.email} in once, until ${link.expiresAt}.`);
}

/** An invitation whose token is shown once. @param address of the gateway */
export function showNewInvitation(answer: InvitationAnswer, address: string, { json }: Format): void {
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

export function showRevoked(deletion: Deletion, { json }: Format): void {
  if (json) printJson(deletion);
  else print(`Revoked ${deletion.id}.`);
}

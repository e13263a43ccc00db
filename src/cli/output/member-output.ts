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
import { type Cell, print, printJson, printTable } from '../terminal/output.ts';
import { minuteColumn } from './limit-output.ts';

interface Format {
  readonly json?: true;
}

const MEMBER_TITLES = ['ID', 'E-MAIL', 'NAME', 'ROLE', 'SINCE'];

const memberRow = (member: MemberRecord): Cell[] => [
  { text: member.id },
  { text: member.email },
  { text: member.name ?? '-' },
  { text: member.role },
  { text: member.createdAt },
];

function printMembers(members: readonly MemberRecord[]): void {
  const minute = minuteColumn(members);
  const rows = members.map((member) => [...memberRow(member), ...minute.cells(member)]);
  printTable([...MEMBER_TITLES, ...minute.titles], rows, 'There are no members.');
}

export function showMembers(members: readonly MemberRecord[], { json }: Format): void {
  if (json) printJson({ members, nextCursor: null });
  else printMembers(members);
}

export function showMember(answer: MemberAnswer, { json }: Format): void {
  if (json) printJson(answer);
  else printMembers([answer.member]);
}

const STATUS_COLOURS: Readonly<Record<InvitationStatus, InspectColor>> = {
  pending: 'yellow',
  accepted: 'green',
  revoked: 'red',
  expired: 'red',
};

const INVITATION_TITLES = ['ID', 'E-MAIL', 'ROLE', 'STATUS', 'INVITED BY', 'TOKEN', 'EXPIRES'];

const invitationRow = (invitation: InvitationRecord): Cell[] => [
  { text: invitation.id },
  { text: invitation.email },
  { text: invitation.role },
  { text: invitation.status, colour: STATUS_COLOURS[invitation.status] },
  { text: invitation.invitedByEmail ?? '-' },
  { text: invitation.maskedToken },
  { text: invitation.expiresAt },
];

export function showInvitations(invitations: readonly InvitationRecord[], { json }: Format): void {
  if (json) printJson({ invitations, nextCursor: null });
  else printTable(INVITATION_TITLES, invitations.map(invitationRow), 'There are no invitations.');
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

import { beforeEach, describe, expect, it } from 'vitest';
import { acceptInvitation } from '../../../src/admin/sign-in/accept-invitation.ts';
import { createInvitation, getInvitation, revokeInvitation } from '../../../src/admin/tenants/invitations.ts';
import { getMember, removeMember } from '../../../src/admin/tenants/members.ts';
import { generateSecret, type Pepper } from '../../../src/domain/id.ts';
import type { Database } from '../../../src/store/db/database.ts';
import { listKeys } from '../../../src/store/tenants/key-records.ts';
import { insertMember } from '../../../src/store/tenants/member-records.ts';
import { insertProject } from '../../../src/store/tenants/tenants.ts';
import { admin, cli, ID, owner, pepper, seededDatabase, startMs } from '../tenants.ts';

const DAY = 86_400_000;
const laterPepper: Pepper = { id: 'later', key: Buffer.alloc(32, 8) };

let db: Database;

beforeEach(() => {
  db = seededDatabase();
});

const invite = (by = owner, role = 'admin') => {
  const { invitation } = createInvitation(db, by, { email: 'ada@example.com', role }, { now: startMs, pepper });
  return { id: invitation.id, token: invitation.token ?? '' };
};

const accept = (
  token: string,
  { name, now = startMs, peppers = [pepper] }: { name?: string; now?: number; peppers?: Pepper[] } = {},
) => acceptInvitation(db, name === undefined ? { token } : { token, name }, { now, peppers, by: 'cli' });

const unknown = expect.objectContaining({ status: 404, message: 'There is no open invitation with this token.' });

describe('the bearer of an invitation token', () => {
  it('becomes a member without a password, once', () => {
    const { id, token } = invite();
    const { member } = accept(token, { name: 'Ada', now: startMs + DAY });

    expect(member).toEqual({
      id: expect.stringMatching(/^mem_/),
      createdAt: '2026-02-01T12:00:00.000Z',
      updatedAt: '2026-02-01T12:00:00.000Z',
      email: 'ada@example.com',
      name: 'Ada',
      role: 'admin',
      requestsPerMinute: null,
      tokensPerMinute: null,
    });
    expect(getMember(db, owner, 'ada@example.com')).toEqual({ member });
    const password = db.connection.prepare('SELECT passwordHash FROM members WHERE id = ?').pluck().get(member.id);
    expect(password).toBeNull();
    expect(getInvitation(db, owner, id, startMs).invitation).toMatchObject({
      status: 'accepted',
      acceptedAt: '2026-02-01T12:00:00.000Z',
      memberId: member.id,
    });
    expect(() => accept(token)).toThrow(unknown);
    removeMember(db, owner, member.id, startMs);
    expect(() => accept(token)).toThrow(unknown);
  });

  it('has a playground key in every project', () => {
    insertProject(db, { id: `proj_${'3'.repeat(32)}`, organizationId: ID.organization, name: 'Second' }, startMs);
    const { member } = accept(invite().token);
    const { items } = listKeys(db, ID.organization, { createdBy: member.id, kind: 'playground' }, { limit: 200 });
    expect(items.map(({ kind, projectId }) => [kind, projectId]).sort()).toEqual([
      ['playground', ID.project],
      ['playground', `proj_${'3'.repeat(32)}`],
    ]);
  });

  it('may come until it expires', () => {
    const { token } = invite();
    const end = startMs + 7 * DAY;
    expect(() => accept(token, { now: end })).toThrow(
      expect.objectContaining({ status: 400, message: 'The invitation has expired: ask for a new one.' }),
    );
    expect(accept(token, { now: end - 1 }).member.role).toBe('admin');
  });

  it('may come after the pepper was rotated, while the old one is accepted', () => {
    const { token } = invite();
    expect(() => accept(token, { peppers: [laterPepper] })).toThrow(unknown);
    expect(accept(token, { peppers: [laterPepper, pepper] }).member.email).toBe('ada@example.com');
  });

  it('may not come when it was revoked, or was none', () => {
    const { id, token } = invite();
    revokeInvitation(db, owner, id, startMs);
    for (const text of [token, generateSecret('invitation'), generateSecret('master'), '', 'x'.repeat(256)]) {
      expect(() => accept(text)).toThrow(unknown);
    }
  });

  it('is refused when its address has become a member otherwise', () => {
    const { token } = invite(admin, 'developer');
    insertMember(
      db,
      {
        id: `mem_${'8'.repeat(32)}`,
        organizationId: ID.organization,
        email: 'ada@example.com',
        name: null,
        role: 'developer',
        passwordHash: null,
      },
      startMs,
    );
    expect(() => accept(token)).toThrow(
      expect.objectContaining({ status: 400, message: 'ada@example.com is a member already.' }),
    );
  });

  it('is not told the token again', () => {
    const token = { not: 'a text' };
    expect(() => acceptInvitation(db, { token }, { now: startMs, peppers: [pepper], by: 'cli' })).toThrow(
      expect.objectContaining({ message: '/token must be the token of an invitation.' }),
    );
    const long = `pcli_${'s'.repeat(300)}`;
    expect(() => accept(long)).toThrow(
      expect.objectContaining({ message: '/token must be the token of an invitation.' }),
    );
  });
});

it('all of it is in the audit log, without the token', () => {
  const { id, token } = invite(cli);
  const { member } = accept(token);
  const rows = db.connection
    .prepare<[], Record<string, string>>('SELECT actorKind, action, targetId, beforeJson, afterJson FROM audit')
    .all();
  expect(rows.map((row) => [row.actorKind, row.action, row.targetId])).toEqual([
    ['cli', 'invitation.create', id],
    ['cli', 'invitation.accept', id],
    ['cli', 'member.create', member.id],
  ]);
  expect(JSON.parse(rows[2]?.afterJson ?? '')).toEqual(member);
  expect(JSON.stringify(rows)).not.toContain(token);
});

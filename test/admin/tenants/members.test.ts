import { beforeEach, expect, it } from 'vitest';
import { createInvitation } from '../../../src/admin/tenants/invitations.ts';
import { changeMember, getMember, removeMember } from '../../../src/admin/tenants/members.ts';
import { changeProject, createProject, deleteProject, getProject } from '../../../src/admin/tenants/projects.ts';
import type { Database } from '../../../src/store/db/database.ts';
import { admin, developer, ID, owner, pepper, seededDatabase, startMs } from '../tenants.ts';

let db: Database;

beforeEach(() => {
  db = seededDatabase();
});

/** What the audit log says, oldest first. */
const audited = () =>
  db.connection
    .prepare<[], Record<string, string | null>>('SELECT * FROM audit ORDER BY seq')
    .all()
    .map(({ action, targetId: target, memberId: by, beforeJson: before, afterJson: after }) => ({
      action,
      target,
      by,
      before: JSON.parse(before ?? 'null'),
      after: JSON.parse(after ?? 'null'),
    }));

it('every change of a project is audited, before and after', () => {
  const { project: made } = createProject(db, admin, { name: 'Second' }, startMs);
  const { project: changed } = changeProject(db, admin, made.id, { cachingEnabled: false }, startMs + 1);
  deleteProject(db, owner, made.id, startMs + 2);
  const target = made.id;
  expect(audited()).toEqual([
    { action: 'project.create', target, by: ID.admin, before: null, after: made },
    { action: 'project.update', target, by: ID.admin, before: made, after: changed },
    { action: 'project.delete', target, by: ID.owner, before: changed, after: null },
  ]);
});

it('every change of a member is audited, and the invitations that end with it', () => {
  const { invitation } = createInvitation(
    db,
    admin,
    { email: 'ada@example.com', role: 'admin' },
    { now: startMs, pepper },
  );
  const { token, ...open } = invitation;
  const { member: before } = getMember(db, owner, ID.admin);
  const { member: after } = changeMember(db, owner, 'admin@example.com', { role: 'developer' }, startMs + 1);
  removeMember(db, owner, ID.admin, startMs + 2);

  const revoked = { ...open, status: 'revoked', updatedAt: after.updatedAt };
  expect(audited()).toEqual([
    { action: 'invitation.create', target: open.id, by: ID.admin, before: null, after: open },
    { action: 'member.update', target: ID.admin, by: ID.owner, before, after },
    { action: 'invitation.revoke', target: open.id, by: ID.owner, before: open, after: revoked },
    { action: 'member.remove', target: ID.admin, by: ID.owner, before: after, after: null },
  ]);
  expect(JSON.stringify(audited())).not.toContain(token);
});

it('what is refused is not audited, and changes nothing', () => {
  const before = [getProject(db, owner, ID.project), getMember(db, owner, ID.owner)];
  const refusals = [
    () => createProject(db, developer, { name: 'Mine' }, startMs),
    () => deleteProject(db, owner, ID.project, startMs),
    () => changeProject(db, owner, ID.otherProject, { name: 'Mine' }, startMs),
    () => changeMember(db, admin, ID.owner, { role: 'developer' }, startMs),
    () => changeMember(db, owner, ID.owner, { name: 'Ada', role: 'developer' }, startMs),
    () => removeMember(db, owner, ID.foreigner, startMs),
  ];
  for (const refused of refusals) expect(refused).toThrow(expect.objectContaining({ name: 'ApiError' }));
  expect([getProject(db, owner, ID.project), getMember(db, owner, ID.owner)]).toEqual(before);
  expect(audited()).toEqual([]);
});

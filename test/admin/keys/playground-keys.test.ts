import { beforeEach, describe, expect, it } from 'vitest';
import { changeKey, listKeys, rollKey } from '../../../src/admin/keys/keys.ts';
import { playgroundKey } from '../../../src/admin/keys/platform-keys.ts';
import { firstRun } from '../../../src/admin/sign-in/sign-in-links.ts';
import { removeMember } from '../../../src/admin/tenants/members.ts';
import { createProject, deleteProject } from '../../../src/admin/tenants/projects.ts';
import { refusal } from '../../../src/domain/api-key.ts';
import { type Database, openDatabase } from '../../../src/store/db/database.ts';
import { findKey, listKeys as storedKeys } from '../../../src/store/tenants/key-records.ts';
import { auditKey, cli, ID, owner, pepper, seededDatabase, startMs } from '../tenants.ts';

let db: Database;

beforeEach(() => {
  db = seededDatabase();
});

const keyOf = (member: string, project: string) => playgroundKey(db, ID.organization, member, project, startMs);
const playgroundKeys = () =>
  storedKeys(db, ID.organization, { kind: 'playground' }, { limit: 200 }).items.map(({ createdBy, projectId }) => [
    createdBy,
    projectId,
  ]);

describe('a playground key', () => {
  it('is there from the first start', () => {
    const fresh = openDatabase(':memory:', { create: true, auditKey });
    const first = firstRun(fresh, pepper, startMs);
    const organizationId = first?.organizationId ?? '';
    const { keys } = listKeys(fresh, { kind: 'cli', organizationId }, { limit: 50, kind: 'playground' }, startMs);
    expect(keys).toEqual([
      expect.objectContaining({
        description: 'Playground',
        projectId: first?.projectId,
        state: 'active',
        usageLimit: null,
      }),
    ]);
  });

  it('is made with a project, for every present member, and once', () => {
    const { project } = createProject(db, owner, { name: 'Second' }, startMs);
    expect(playgroundKeys().sort()).toEqual(
      [[ID.developer, ID.project], ...[ID.owner, ID.admin, ID.developer].map((member) => [member, project.id])].sort(),
    );
    const key = keyOf(ID.admin, project.id);
    expect([keyOf(ID.admin, project.id).id, playgroundKeys().length]).toEqual([key.id, 4]);
  });

  it('is made where it is missing, without the keys of others', () => {
    const key = keyOf(ID.owner, ID.project);
    expect(key).toMatchObject({ kind: 'playground', createdBy: ID.owner, projectId: ID.project });
    expect(playgroundKeys().sort()).toEqual([
      [ID.owner, ID.project],
      [ID.developer, ID.project],
    ]);
  });

  it("is nobody else's: members and projects of another organization are 404", () => {
    const missing = expect.objectContaining({ status: 404 });
    expect(() => keyOf(ID.foreigner, ID.project)).toThrow(missing);
    expect(() => keyOf(ID.owner, ID.otherProject)).toThrow(missing);
  });

  it('takes rules of its member and tags of its own, and no one can change anything else of it', () => {
    const { id } = keyOf(ID.owner, ID.project);
    const denied = expect.objectContaining({ status: 403 });
    for (const body of [{ description: 'Mine' }, { usageLimit: '1' }, { status: 'inactive' }]) {
      expect(() => changeKey(db, cli, id, body, startMs)).toThrow(denied);
    }
    expect(() => rollKey(db, cli, id, { now: startMs, pepper })).toThrow(denied);
    expect(changeKey(db, cli, id, { tags: ['trial'] }, startMs).key.tags).toEqual(['trial']);
    const scope = db.connection.prepare('SELECT scope FROM subject_rules WHERE subjectId = ?').pluck().get(id);
    expect(scope).toBe('key');
  });

  it('has no secret: what is stored in the place of its hash is random, under no pepper', () => {
    const { id } = keyOf(ID.owner, ID.project);
    const other = keyOf(ID.admin, ID.project);
    const secret = (key: string) =>
      db.connection
        .prepare<[string], Record<string, string>>('SELECT secretHash, pepperId, mask FROM keys WHERE id = ?')
        .get(key);
    expect(secret(id)).toEqual({
      secretHash: expect.stringMatching(/^[0-9a-f]{64}$/),
      pepperId: 'none',
      mask: 'none',
    });
    expect(secret(id)?.secretHash).not.toBe(secret(other.id)?.secretHash);
  });

  it('ends with its member and with its project', () => {
    const { project } = createProject(db, owner, { name: 'Second' }, startMs);
    const [ofMember, ofProject] = [keyOf(ID.admin, ID.project), keyOf(ID.owner, project.id)];
    removeMember(db, owner, ID.admin, startMs);
    deleteProject(db, owner, project.id, startMs);
    const codes = [ofMember, ofProject].map(({ id }) => {
      const key = findKey(db, ID.organization, id);
      return key === undefined ? undefined : refusal(key, startMs)?.code;
    });
    expect(codes).toEqual(['api_key_disabled', 'invalid_api_key']);

    const { project: third } = createProject(db, owner, { name: 'Third' }, startMs);
    expect(playgroundKeys().filter(([, of]) => of === third.id)).toEqual([
      [ID.developer, third.id],
      [ID.owner, third.id],
    ]);
  });
});

it('a thousand members get theirs in a new project', () => {
  const insert = db.connection.prepare(
    "INSERT INTO members (id, organizationId, email, role, createdAt, updatedAt) VALUES (?, ?, ?, 'developer', 0, 0)",
  );
  for (let made = 3; made < 1000; made++) insert.run(`mem_${made}`, ID.organization, `${made}@example.com`);
  const { project } = createProject(db, owner, { name: 'Second' }, startMs);
  const count = db.connection.prepare('SELECT count(*) FROM keys WHERE projectId = ?').pluck().get(project.id);
  expect(count).toBe(1000);
});

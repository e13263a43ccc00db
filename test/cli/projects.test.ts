import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CommandLine, createCommandLine, jsonOf } from './command-line.ts';

let portcullis: CommandLine;

beforeAll(async () => {
  portcullis = await createCommandLine();
});
afterAll(() => portcullis.close());

const projects = (...args: string[]) => portcullis.run('projects', ...args);

describe('portcullis projects', () => {
  it('creates, lists, updates and deletes', async () => {
    const { project } = Object(
      jsonOf(await projects('create', 'Research', '--cache-seconds', '600', '--rpm', '60', '--json')),
    );
    expect(project).toEqual({
      id: expect.stringMatching(/^proj_/),
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
      name: 'Research',
      cachingEnabled: true,
      cacheDurationSeconds: 600,
      requestsPerMinute: 60,
      tokensPerMinute: null,
    });

    const { stdout } = await projects('list');
    expect(stdout.split('\n').map((line) => line.split(/ {2,}/).slice(0, 3))).toEqual([
      ['NAME', 'ID', 'CACHE'],
      ['Research', project.id, '600 s'],
      ['Default', portcullis.first.projectId, '60 s'],
      [''],
    ]);

    const updated = await projects('update', 'Research', '--name', 'Lab', '--caching', 'off', '--tpm', '5000');
    expect(updated.stdout.split('\n')[1]?.split(/ {2,}/).slice(0, 3)).toEqual(['Lab', project.id, 'off']);
    expect(updated.stdout).toMatch(/ PER MINUTE\n.* 60 calls, 5000 tokens\n$/);

    const made = Object(
      jsonOf(await portcullis.run('keys', 'create', '--project', 'Lab', '--description', 'Lab', '--json')),
    );
    const listed = Object(
      jsonOf(await portcullis.run('keys', 'list', '--project', 'Lab', '--kind', 'playground', '--json')),
    );
    expect(listed.keys.map((key: { kind: string; description: string }) => [key.kind, key.description])).toEqual([
      ['playground', 'Playground'],
    ]);

    expect(await projects('delete', 'Lab')).toEqual({ code: 0, stdout: `Removed ${project.id}.\n`, stderr: '' });
    expect(await portcullis.run('keys', 'disable', made.key.id)).toMatchObject({
      code: 1,
      stderr: 'portcullis: There is no such key.\n',
    });
    const left = Object(jsonOf(await projects('list', '--json')));
    expect([left.projects.length, left.nextCursor]).toEqual([1, null]);
  });

  it('keeps the last one', async () => {
    expect(await projects('delete', 'Default')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'portcullis: The last project of an organization cannot be deleted.\n',
    });
  });

  it('says what is wrong with a command', async () => {
    expect(await projects('update', 'Default')).toEqual({
      code: 2,
      stdout: '',
      stderr: 'portcullis: Say what to change: --name, --caching, --cache-seconds, --rpm, --tpm.\n',
    });
    expect((await projects('update', 'Default', '--caching', 'maybe')).code).toBe(2);
    expect((await projects('create', 'Fast', '--cache-seconds', 'soon')).code).toBe(2);
    expect(await projects('create', 'Fast', '--cache-seconds', '9')).toEqual({
      code: 2,
      stdout: '',
      stderr: 'portcullis: --cache-seconds (9) must be a whole number from 10 to 31536000.\n',
    });
  });
});

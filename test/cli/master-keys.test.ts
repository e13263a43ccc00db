import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hashSecret } from '../../src/domain/id.ts';
import { findMasterKeyByHash } from '../../src/store/tenants/master-key-records.ts';
import { type CommandLine, createCommandLine, jsonOf } from './command-line.ts';

let portcullis: CommandLine;

beforeAll(async () => {
  portcullis = await createCommandLine();
});
afterAll(() => portcullis.close());

const actsFor = (token: string) =>
  portcullis.store.read((db) => findMasterKeyByHash(db, hashSecret(token, portcullis.secrets.peppers[0])));

describe('portcullis master-keys', () => {
  it('makes a key that acts for the first owner, shows its token once, and ends it', async () => {
    const made = await portcullis.run('master-keys', 'create', '--description', 'CI');
    const [, id = '', token = ''] = /^(mkey_\w+)\n\n {2}(pclm_\w+)\n\nThis token is shown once/.exec(made.stdout) ?? [];
    expect(await actsFor(token)).toMatchObject({ masterKeyId: id, role: 'owner' });

    const listed = await portcullis.run('master-keys', 'list', '--wide');
    const mask = expect.stringMatching(/^pclm_\w{4}…\w{4}$/);
    expect(listed.stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['DESCRIPTION', 'ID', 'ACTS FOR', 'LAST USED', 'TOKEN'],
      ['CI', id, 'owner@localhost', 'never', mask],
      ['First master key', expect.stringMatching(/^mkey_/), 'owner@localhost', 'never', mask],
      [''],
    ]);
    expect(listed.stdout).not.toContain(token);

    expect(await portcullis.run('master-keys', 'delete', 'CI')).toMatchObject({ code: 0, stdout: `Deleted ${id}.\n` });
    expect(await actsFor(token)).toBeUndefined();
    expect(await portcullis.run('master-keys', 'delete', 'CI')).toMatchObject({
      code: 1,
      stderr: 'portcullis: There is no master key with the id, masked token or description "CI".\n',
    });
  });

  it('makes one for a member that is named', async () => {
    const options = ['--description', 'Theirs', '--member', 'owner@localhost', '--json'];
    const { masterKey } = Object(jsonOf(await portcullis.run('master-keys', 'create', ...options)));
    expect(masterKey).toMatchObject({ description: 'Theirs', createdBy: expect.stringMatching(/^mem_/) });
    expect(await actsFor(masterKey.token)).toMatchObject({ memberId: masterKey.createdBy });
    expect(await portcullis.run('master-keys', 'create', '--description', 'X', '--member', 'nobody@x')).toMatchObject({
      code: 1,
      stderr: 'portcullis: There is no member with the id or e-mail "nobody@x".\n',
    });
    expect(await portcullis.run('master-keys', 'create')).toMatchObject({ code: 2 });
  });
});

// The only way into force: what is no policy of ours is refused in words that say why, whatever it does.
import { hash } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { archivedBundle, BundleRefused, readArchive } from '../../../src/policy/archive/read-archive.ts';
import { type Trust, verifySignature } from '../../../src/policy/archive/signature.ts';
import { POLICY_DIRECTORY, readBundle } from '../../../src/policy/bundle.ts';
import { createPdp } from '../../../src/policy/pdp.ts';
import { passSelfTest } from '../../../src/policy/self-test.ts';
import { loadTried, passTrial, tryBundle } from '../../../src/workbench/bundles/try-bundle.ts';
import { hostileModule } from '../../support/hostile-modules.ts';
import {
  archiveOf,
  bundleFiles,
  claimsOf,
  compiled,
  moduleThat,
  NEVER_RETURN,
  signed,
  signingKey,
  TRAP,
} from '../../support/policy-bundles.ts';

const UNSIGNED: Trust = { publicKeys: [], scope: undefined };
const key = signingKey();
const TRUST: Trust = { publicKeys: [signingKey().publicKey, key.publicKey], scope: undefined };

const tried = (archive: Uint8Array, trust: Trust = UNSIGNED, limitMs?: number) =>
  tryBundle({ archive, trust }, limitMs === undefined ? {} : { limitMs });

async function refusalOf(trial: Promise<unknown>): Promise<[code: string, message: string]> {
  try {
    await trial;
  } catch (error) {
    if (error instanceof BundleRefused) return [error.code, error.message];
    throw error;
  }
  throw new Error('it was not refused');
}

const refusal = (files: Readonly<Record<string, string | Uint8Array>>, trust?: Trust) =>
  refusalOf(tried(archiveOf(files), trust));

const good = bundleFiles('v1');

const FIXTURE = `
name: Swift is denied where a rule says so
given:
  catalog: { models: { swift-1: { providers: { acme: {} } } } }
  keys: { ci: { rules: { no-swift: { deny_models: [swift-1] } } } }
requests: { model: swift-1 }
expect:
  - { model: swift-1, deny: key deny_models }
`;

describe('a bundle passes', () => {
  it('as opa build makes it, under the digest of its module', async () => {
    const { digest, revision, data } = await tried(archiveOf(good));
    expect({ digest, revision, data }).toEqual({ digest: readBundle().digest, revision: 'v1', data: undefined });
  });

  it('with data of its own, which change its digest', async () => {
    const one = await tried(archiveOf({ ...good, 'data.json': '{"custom_data":{"limit":1}}' }));
    const other = await tried(archiveOf({ ...good, 'data.json': '{"custom_data":{"limit":2}}' }));
    expect(one.data).toBe('{"custom_data":{"limit":1}}');
    expect(new Set([one.digest, other.digest, readBundle().digest]).size).toBe(3);
  });

  it('with fixtures that it passes', async () => {
    const files = { ...good, 'fixtures/swift.yaml': FIXTURE };
    expect((await tried(archiveOf(files))).revision).toBe('v1');
  });

  it('signed by one of the keys', async () => {
    expect((await tried(archiveOf(signed(good, key)), TRUST)).revision).toBe('v1');
  });

  it('signed for the wanted scope', async () => {
    const files = signed(good, key, { ...claimsOf(good), scope: 'write' });
    expect((await tried(archiveOf(files), { ...TRUST, scope: 'write' })).revision).toBe('v1');
  });
});

// By `opa build -t wasm -b <folder> -O 0 --signing-key <RSA> --signing-alg RS256` from the policy of 2026-11-24, over data whose hash
// depends on how Go writes them.
it('a signature that opa made is verified', async () => {
  const file = (name: string) => readFileSync(new URL(`../../fixtures/policy/${name}`, import.meta.url));
  const files = readArchive(file('signed-by-opa.tar.gz'));
  await verifySignature(files, { publicKeys: [file('signed-by-opa.pem').toString()], scope: undefined });
  const { revision, data } = archivedBundle(files);
  expect(revision).toBe('signed by opa');
  expect(data).toBe(
    '{"custom_data":{"a":[1e3,12345678901234567890,"\\u003c\\u0026\\u003e\\u2028é\\b\\u0007",true,null],"b":1.50,"～":-0,"😀":{}}}',
  );
});

describe('a signature is refused', () => {
  it.each<[string, Parameters<typeof refusal>, string]>([
    ['missing', [good, TRUST], 'It is not signed.'],
    [
      'by a key that nobody knows',
      [signed(good, signingKey()), TRUST],
      'No key in POLICY_BUNDLE_PUBLIC_KEY made its signature.',
    ],
    [
      'without a key to verify it',
      [signed(good, key), UNSIGNED],
      'It is signed, and there is no public key to verify it with: set POLICY_BUNDLE_PUBLIC_KEY.',
    ],
    [
      'of another file',
      [{ ...signed(good, key), 'data.json': '{"a":1}' }, TRUST],
      'data.json differs from the file that was signed.',
    ],
    ['of fewer files', [{ ...signed(good, key), 'more.rego': '' }, TRUST], 'Its signature does not cover more.rego.'],
    [
      'of more files',
      [signed(good, key, claimsOf({ ...good, 'gone.rego': '' })), TRUST],
      'It lacks "gone.rego", which was signed.',
    ],
    [
      'for another scope',
      [signed(good, key, { ...claimsOf(good), scope: 'read' }), { ...TRUST, scope: 'write' }],
      'Its signature states the scope "read", but POLICY_BUNDLE_SCOPE asks for the scope "write".',
    ],
    [
      'for a scope, where none is wanted',
      [signed(good, key, { ...claimsOf(good), scope: 'read' }), TRUST],
      'Its signature states the scope "read", but POLICY_BUNDLE_SCOPE asks for no scope.',
    ],
    [
      'over weak hashes',
      [signed(good, key, { files: [{ name: 'policy.wasm', hash: '00', algorithm: 'MD5' }] }), TRUST],
      'Its signature lists no files with their hashes, by SHA-256, SHA-384 or SHA-512.',
    ],
    [
      'twice',
      [{ ...good, '.signatures.json': '{"signatures":["a","b"]}' }, TRUST],
      '.signatures.json must hold exactly one signature.',
    ],
  ])('%s', async (_, [files, trust], message) => {
    expect(await refusal(files, trust)).toEqual(['signature', message]);
  });

  it('of algorithm none, and by a shared secret', async () => {
    const forged = (header: object) => {
      const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
      const signatures = [`${part(header)}.${part(claimsOf(good))}.`];
      return refusal({ ...good, '.signatures.json': JSON.stringify({ signatures }) }, TRUST);
    };
    const none = ['signature', 'No key in POLICY_BUNDLE_PUBLIC_KEY made its signature.'];
    expect([await forged({ alg: 'none' }), await forged({ alg: 'HS256' })]).toEqual([none, none]);
  });
});

describe('a module is refused, and harms nobody,', { timeout: 180_000 }, () => {
  const refusalOfHostile = (name: Parameters<typeof hostileModule>[0], limitMs = 120_000) =>
    refusalOf(tried(archiveOf({ ...good, 'policy.wasm': hostileModule(name) }), UNSIGNED, limitMs));

  it('that takes all memory while it is loaded', async () => {
    expect(await refusalOfHostile('all memory while it is loaded')).toEqual([
      'self_test',
      'Its trial crashed: it took more than 768 MB of memory.',
    ]);
  });

  it('that ends its process by a fatal error of V8', async () => {
    expect(await refusalOfHostile('a list of entrypoints that takes more memory than V8 has')).toEqual([
      'self_test',
      expect.stringMatching(/^Its trial crashed: .*JavaScript heap out of memory\.$/),
    ]);
  });

  it.each(['a list of entrypoints without end', 'a failure whose text does not end'] as const)(
    'that is never read to its end: %s',
    async (name) => {
      const refused = await refusalOfHostile(name, 5000);

      // The machine's speed decides which bound it meets first.
      expect([
        ['time_limit', 'Its trial took longer than 5000 ms.'],
        ['self_test', expect.stringMatching(/^Its trial crashed: .*JavaScript heap out of memory\.$/)],
      ]).toContainEqual(refused);
    },
  );

  it('that calls a builtin of the host and hid it', async () => {
    expect(await refusalOfHostile('a hidden builtin')).toEqual([
      'self_test',
      'It fails the self-test: The policy could not be evaluated. not implemented: built-in function 1: sprintf',
    ]);
  });

  it('that could write lines to the log', async () => {
    expect(await refusalOfHostile('lines for the log')).toEqual([
      'policy',
      'The compiled policy cannot be used. The policy imports opa_println.',
    ]);
  });

  it('whose trial cannot start', async () => {
    const options = process.env.NODE_OPTIONS;
    process.env.NODE_OPTIONS = '--not-an-option';
    onTestFinished(() => {
      if (options === undefined) delete process.env.NODE_OPTIONS;
      else process.env.NODE_OPTIONS = options;
    });
    expect(await refusalOfHostile('lines for the log')).toEqual([
      'self_test',
      'Its trial crashed: it ended with exit code 9.',
    ]);
  });
});

describe('only what was tried is loaded', () => {
  it('of an archive: neither another module nor other data', async () => {
    const passed = await passTrial({ archive: archiveOf(good), trust: UNSIGNED });
    const others = [{ 'policy.wasm': compiled('permit-all') }, { 'data.json': '{"custom_data":1}' }];
    for (const other of others) {
      const archive = archiveOf({ ...good, ...other });
      expect(() => loadTried({ archive, trust: UNSIGNED }, passed)).toThrow(BundleRefused);
    }
  });

  it('for a look: a bundle that may not serve is loaded, one that cannot be loaded is refused', async () => {
    const looked = (wasm: Uint8Array) =>
      tryBundle({
        archive: archiveOf({ ...good, 'policy.wasm': wasm }),
        trust: null,
        onlyLoads: true,
      });
    expect((await looked(compiled('permit-all'))).revision).toBe('v1');
    expect((await refusalOf(looked(moduleThat(TRAP))))[0]).toBe('policy');
  });
});

function replaceModule(directory: string, wasm: Uint8Array): void {
  const file = path.join(directory, 'bundle/manifest.json');
  writeFileSync(path.join(directory, 'bundle/policy.wasm'), wasm);
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), wasmSha256: hash('sha256', wasm) }));
}

describe('a policy is refused', () => {
  it.each<[string, string | Uint8Array, [string, string]]>([
    [
      'that permits everything',
      compiled('permit-all'),
      ['self_test', 'It fails the self-test: deny_models {"models":["swift-1"]} does not deny for an organization.'],
    ],
    [
      'that lacks a builtin',
      compiled('host-builtin'),
      ['policy', 'The compiled policy cannot be used. The policy asks for builtins of the host: {"time.now_ns":1}.'],
    ],
    [
      'that contradicts itself',
      compiled('contradictory'),
      [
        'self_test',
        'It fails the self-test: The policy could not be evaluated. contradictory.rego:7:1: var assignment conflict',
      ],
    ],
    [
      'that takes all memory',
      compiled('endless'),
      ['self_test', 'It fails the self-test: The policy could not be evaluated. opa_malloc: failed'],
    ],
    ['that traps', moduleThat(TRAP), ['policy', 'The compiled policy cannot be used. unreachable']],
    [
      'that lacks an entrypoint',
      compiled('one-entrypoint'),
      ['policy', 'The compiled policy cannot be used. Its entrypoints are gateway/authz/decision.'],
    ],
    [
      'that is no module',
      'no module',
      [
        'policy',
        'The compiled policy cannot be used. WebAssembly.Module(): expected magic word 00 61 73 6d, found 6e 6f 20 6d @+0',
      ],
    ],
  ])('%s', async (_, wasm, expected) => {
    expect(await refusal({ ...good, 'policy.wasm': wasm })).toEqual(expected);
  });

  it('that never returns', async () => {
    const archive = archiveOf({ ...good, 'policy.wasm': moduleThat(NEVER_RETURN) });
    expect(await refusalOf(tried(archive, UNSIGNED, 3000))).toEqual([
      'time_limit',
      'Its trial took longer than 3000 ms.',
    ]);
  });

  it('that fails a fixture of its own', async () => {
    const files = { ...good, 'fixtures/swift.yaml': FIXTURE.replace('deny: key deny_models', 'permit: all') };
    expect(await refusal(files)).toEqual([
      'fixtures',
      'One of its fixtures fails: "Swift is denied where a rule says so", model=swift-1: expected permit acme/swift-1, got deny key deny_models (Access denied: model not allowed: swift-1 is denied by rule no-swift.).',
    ]);
  });

  it('whose fixtures name files that are not in the bundle', async () => {
    const files = {
      ...good,
      'fixtures/swift.yaml': 'name: a\ngiven: { include: /etc/hostname }\nrequests: { model: a }\nexpect: []\n',
    };
    const [code, message] = await refusal(files);
    expect([code, message]).toEqual(['fixtures', expect.stringContaining('There is no file /etc/hostname.')]);
  });

  it.each<[string, Readonly<Record<string, string>>, string]>([
    ['without module', { '.manifest': '{}' }, 'It has no policy.wasm: build it with opa build -t wasm.'],
    [
      'with rules for subjects',
      { ...ofText(), 'data.json': '{"subjects":{}}' },
      'data.json holds "subjects", which is reserved for the gateway.',
    ],
    [
      'with data elsewhere',
      { ...ofText(), 'a/data.json': '{}' },
      'It holds a/data.json, but data is read from data.json only: build it with opa build.',
    ],
    ['with data that are a list', { ...ofText(), 'data.json': '[]' }, 'data.json is not a JSON object.'],
    [
      'with large data',
      { ...ofText(), 'data.json': `{"a":"${'a'.repeat(65_536)}"}` },
      'data.json is larger than 65536 bytes.',
    ],
    ['with a broken manifest', { ...ofText(), '.manifest': '{' }, '.manifest is not JSON.'],
  ])('%s', async (_, files, message) => {
    expect(await refusal(files)).toEqual(['policy', message]);
  });
});

/** What is refused before the module is looked at needs none. */
function ofText(): Readonly<Record<string, string>> {
  return { 'policy.wasm': 'none' };
}

describe('the policy of this installation', () => {
  it('passes the self-test', () => {
    expect(() => passSelfTest(createPdp(readBundle()))).not.toThrow();
  });

  it('is refused when it permits everything', () => {
    const directory = mkdtempSync(path.join(tmpdir(), 'policy-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    cpSync(POLICY_DIRECTORY, directory, { recursive: true });
    replaceModule(directory, compiled('permit-all'));
    expect(() => passSelfTest(createPdp(readBundle(directory)))).toThrow(/^It fails the self-test: /);
  });
});

it('a bundle whose trial takes too long is refused', async () => {
  expect(await refusalOf(tried(archiveOf(good), UNSIGNED, 1))).toEqual([
    'time_limit',
    'Its trial took longer than 1 ms.',
  ]);
});

describe('an archive is refused', () => {
  it('that is cut off anywhere', async () => {
    const archive = archiveOf(good);
    for (const length of [0, 10, 1000, archive.length - 1]) {
      expect(await refusalOf(tried(archive.subarray(0, length)))).toEqual([
        'archive',
        'Not a gzip archive, or truncated.',
      ]);
    }
  });

  it('that is no gzip', async () => {
    expect((await refusalOf(tried(Buffer.from('hello'))))[0]).toBe('archive');
  });

  const unpacked = gunzipSync(archiveOf(good));
  const behindGzip = 'Bytes follow the end of its gzip archive.';
  const behindTar = 'Bytes follow the end of its tar archive.';
  const more = gunzipSync(archiveOf({ 'more.rego': '' }));

  it.each<[string, Uint8Array, string]>([
    ['a byte behind its gzip archive', Buffer.concat([archiveOf(good), Buffer.from('x')]), behindGzip],
    ['zeros behind its gzip archive', Buffer.concat([archiveOf(good), Buffer.alloc(512)]), behindGzip],
    ['a second gzip member', Buffer.concat([archiveOf(good), gzipSync('more')]), behindGzip],
    ['an empty second gzip member', Buffer.concat([archiveOf(good), gzipSync('')]), behindGzip],
    ['its content in two gzip members', Buffer.concat([gzipSync(''), archiveOf(good)]), behindGzip],
    ['its own gzip trailer again', Buffer.concat([archiveOf(good), archiveOf(good).subarray(-8)]), behindGzip],
    ['text behind its tar archive', gzipSync(Buffer.concat([unpacked, Buffer.from('more')])), behindTar],
    ['a second tar archive', gzipSync(Buffer.concat([unpacked, more])), behindTar],
    ['a second tar archive behind zeros', gzipSync(Buffer.concat([unpacked, Buffer.alloc(5120), more])), behindTar],
    ['a file twice', gzipSync(Buffer.concat([unpacked.subarray(0, -1024), unpacked])), 'It holds ".manifest" twice.'],
  ])('with %s', async (_, archive, message) => {
    expect(await refusalOf(tried(archive))).toEqual(['archive', message]);
  });

  it('whose gzip checksum, length or header is wrong', async () => {
    const changed = (at: number, value: number): Buffer => {
      const archive = archiveOf(good);
      archive[archive.length + at] = value;
      return archive;
    };
    const damaged = 'The gzip archive is damaged: its checksum or length is wrong.';
    const { length } = archiveOf(good);
    const refusals = [changed(-1, 9), changed(-5, archiveOf(good).at(-5) === 1 ? 2 : 1), changed(3 - length, 0x20)];
    expect(await Promise.all(refusals.map((archive) => refusalOf(tried(archive))))).toEqual([
      ['archive', damaged],
      ['archive', damaged],
      ['archive', 'Not a gzip archive, or truncated.'],
    ]);
  });

  it('unless what follows is what tar and gzip write: a name in the header, zeros to the end of a record', async () => {
    const archive = archiveOf(good);
    const name = Buffer.from('bundle.tar\0');
    const named = Buffer.concat([
      archive.subarray(0, 3),
      Buffer.from([8]),
      archive.subarray(4, 10),
      name,
      archive.subarray(10),
    ]);
    const record = gzipSync(Buffer.concat([unpacked, Buffer.alloc(10_240 - (unpacked.length % 10_240))]));
    expect([(await tried(named)).revision, (await tried(record)).revision]).toEqual(['v1', 'v1']);
  });

  it('that unpacks to more than 20 MB', async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
    expect(await refusalOf(tried(bomb))).toEqual(['archive', 'It unpacks to more than 20971520 bytes.']);
  });
});

import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ArchiveFiles, RESERVED_DATA, readArchive } from '../../policy/archive/read-archive.ts';
import { SIGNATURES } from '../../policy/archive/signature.ts';
import { POLICY_DIRECTORY } from '../../policy/bundle.ts';
import { tarGz } from '../export/export-archive.ts';
import { isFixture } from '../fixtures/test-policy.ts';

export interface BuiltBundle {
  readonly files: ArchiveFiles;
  /** Possible mistakes, in sentences. */
  readonly warnings: readonly string[];
}

/** Roots that a team's folder may define: OPA refuses a bundle that leaves its roots, and roots that overlap. */
const OWN_MANIFEST = JSON.stringify({ roots: ['custom', 'custom_data'], rego_version: 1 });
const SCHEMAS = fileURLToPath(new URL('../../../schemas/policy', import.meta.url));
/** Rego has a misspelt field of the input refused where an annotation names the schema: so this one is added for the check. */
const TYPED_INPUT = '# METADATA\n# scope: subpackages\n# schemas:\n#   - input: schema.input\npackage custom\n';
/** Target of the copy of the team's folder. The module holds the name, for messages of the evaluator. */
const OWN = 'own';

/**
 * A bundle of the gateway's Rego, the Rego (package `custom`) and data (below `custom_data`) of a folder, and its fixtures.
 * Compiled by `opa`, which must be on the PATH. @throws Error with what `opa` said, or for a folder without rules
 */
export function buildBundle(folder: string, revision: string): BuiltBundle {
  const names = filesBelow(folder);
  return inWorkFolder((work) => {
    const own = path.join(work, OWN);
    cpSync(POLICY_DIRECTORY, path.join(work, 'policy'), { recursive: true, filter: isSource });
    cpSync(folder, own, { recursive: true, filter: isSource });
    writeFileSync(path.join(own, '.manifest'), OWN_MANIFEST);
    const run = (...args: string[]): string => opa(work, folder, args);
    const capabilities = ['--capabilities', path.join(POLICY_DIRECTORY, 'capabilities.json')];
    const typed = path.join(own, 'portcullis_typed_input.rego');
    writeFileSync(typed, TYPED_INPUT);
    run('check', '--strict', '--schema', SCHEMAS, ...capabilities, '--bundle', 'policy', OWN);
    rmSync(typed);
    const code = ['--ignore', '*_test.rego', '-b', 'policy', '-b', OWN];
    const { virtual: defined = [], base: read = [] }: Dependencies = JSON.parse(
      run('deps', '--format', 'json', ...code, 'data.custom'),
    );
    if (defined.length === 0) throw new Error(`${folder} has no rule in a package custom: there is nothing to build.`);
    run('build', '-t', 'wasm', '-O', '0', '--revision', revision, '-o', 'bundle.tar.gz', ...capabilities, ...code);
    const compiled = readArchive(readFileSync(path.join(work, 'bundle.tar.gz')));
    const fixtures = names.filter(isFixture);
    return {
      files: new Map([...compiled, ...fixtures.map((name) => [name, readFileSync(path.join(folder, name))] as const)]),
      warnings: [
        ...(defined.some((ref) => refText(ref) === 'data.custom.deny')
          ? []
          : ['package custom defines no `deny`, so it denies nothing.']),
        ...missingData(read, compiled),
        ...unusedFiles(names),
        ...(fixtures.length === 0 ? ['there are no fixtures: nothing shows that the policy does what it should.'] : []),
      ],
    };
  });
}

export interface Signing {
  /** Path of a private key in PEM form. */
  readonly key: string;
  /** `ES256` */
  readonly algorithm: string;
  /** Its place in the order of its makers' bundles: a gateway takes none with a lower one afterwards. */
  readonly number: number;
}

/** The files with a signature, which `opa` makes. @throws Error with what it said */
export const signBundle = (files: ArchiveFiles, { key, algorithm, number }: Signing): ArchiveFiles =>
  inWorkFolder((work) => {
    writeFileSync(path.join(work, 'bundle.tar.gz'), tarGz(files));
    writeFileSync(path.join(work, 'claims.json'), JSON.stringify({ number }));
    const by = ['--signing-key', key, '--signing-alg', algorithm, '--claims-file', 'claims.json'];
    opa(work, work, ['sign', ...by, '-o', '.', '-b', 'bundle.tar.gz']);
    return new Map([...files, [SIGNATURES, readFileSync(path.join(work, SIGNATURES))]]);
  });

function inWorkFolder<T>(work: (folder: string) => T): T {
  const folder = mkdtempSync(path.join(tmpdir(), 'portcullis-build-'));
  try {
    return work(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Output of `opa deps` for a package: its rules, and the references that they read. */
interface Dependencies {
  readonly virtual?: readonly Ref[];
  readonly base?: readonly Ref[];
}
type Ref = readonly { readonly value: unknown }[];

const refText = (ref: Ref): string => ref.map(({ value }) => value).join('.');

/** Data that are read and that nothing defines: a rule that looks at them never holds. */
function missingData(read: readonly Ref[], files: ArchiveFiles): string[] {
  const data: unknown = JSON.parse(files.get('data.json')?.toString('utf8') ?? '{}');
  return read
    .filter(([root, name]) => root?.value === 'data' && !RESERVED_DATA.includes(String(name?.value)))
    .filter((ref) => !isDefined(data, ref.slice(1)))
    .map((ref) => `nothing defines ${refText(ref)}: a rule that reads it does not hold.`);
}

function isDefined(data: unknown, [first, ...others]: Ref): boolean {
  if (first === undefined) return true;
  if (typeof data !== 'object' || data === null) return false;
  const found = Object.entries(data).find(([name]) => name === String(first.value));
  return found !== undefined && isDefined(found[1], others);
}

const LISTED = 5;

/** Finds files at places from which a bundle takes neither data nor fixtures: `fixture/a.yaml`, `custom_data/limits.json`. */
function unusedFiles(names: readonly string[]): string[] {
  const unused = names.filter(
    (name) => /\.(?:ya?ml|json)$/.test(name) && !/(?:^|\/)(?:\.|data\.(?:json|ya?ml)$)/.test(name) && !isFixture(name),
  );
  if (unused.length === 0) return [];
  const more = unused.length > LISTED ? ` and ${unused.length - LISTED} more` : '';
  const listed = unused.slice(0, LISTED).join(', ');
  return [
    `${listed}${more}: not used. A bundle takes *.rego, data.json or data.yaml in custom_data, and *.yaml in fixtures.`,
  ];
}

/** Not what was compiled before, nor a signature of it. */
const isSource = (file: string): boolean =>
  !path.relative(POLICY_DIRECTORY, file).startsWith('bundle') && path.basename(file) !== SIGNATURES;

const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)).split(path.sep).join('/'))
    .sort();

/** @param folder the one that is known as `own` in `cwd` */
function opa(cwd: string, folder: string, args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync('opa', args, { cwd, encoding: 'utf8' });
  if (error !== undefined) {
    throw new Error('`opa` is needed to compile Rego, and is not on the PATH: install OPA 1.22 or newer.', {
      cause: error,
    });
  }
  if (status === 0) return stdout;
  const said = `${stderr}${stdout}`
    .trim()
    .replaceAll(/(^|\s)own(?=[/:])/gm, (_, before: string) => `${before}${folder}`);
  throw new Error(`opa ${args[0]} failed:\n${said}`);
}

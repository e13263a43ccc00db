// The house rules of the README ("Where things live"), enforced: ranks, no cycles, one home for each external package.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Node, SyntaxKind } from 'typescript/unstable/ast';
import { isBinaryExpression, isComputedPropertyName, isElementAccessExpression } from 'typescript/unstable/ast/is';
import { API, type Checker, type Type, TypeFlags } from 'typescript/unstable/sync';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const src = path.join(root, 'src');

/** A folder or file directly under `src`, and how high it stands: imports go to lower ranks only. */
const RANKS: Record<string, number> = {
  generated: 0,
  lib: 0,
  domain: 1,
  config: 1,
  telemetry: 1,
  net: 1,
  catalog: 2,
  store: 2,
  policy: 2,
  providers: 2,
  core: 3,
  admin: 4,
  workbench: 4,
  'version.ts': 3,
  mcp: 5,
  oauth: 5,
  http: 6,
  'assembly.ts': 7,
  'container.ts': 7,
  'main.ts': 7,
  'thread.ts': 7,
  'cli.ts': 7,
  cli: 7,
};

/** Same-rank imports that the architecture allows. */
const ALLOWED_SIDEWAYS = [
  ['lib', 'generated'],
  ['net', 'domain'],
  ['net', 'config'],
  ['net', 'telemetry'],
  ['config', 'domain'],
  ['telemetry', 'domain'],
  ['telemetry', 'config'],
  ['container.ts', 'assembly.ts'],
  ['main.ts', 'container.ts'],
  ['cli.ts', 'cli'],
  ['cli', 'main.ts'],
  ['cli', 'container.ts'],
];

const PACKAGE_HOMES: Record<string, string[]> = {
  koa: ['src/http', 'src/oauth'],
  '@koa/cors': ['src/http'],
  '@koa/router': ['src/http', 'src/oauth'],
  '@modelcontextprotocol/server': ['src/mcp'],
  sharp: ['src/lib/sharp.ts'],
  '@simplewebauthn/server': ['src/admin/sign-in/passkeys.ts'],
  kysely: ['src/store'],
  'lru-cache': ['src/admin/log', 'src/core', 'src/domain', 'src/net', 'src/store'],
  'better-sqlite3': ['src/store'],
  undici: ['src/net'],
  'oidc-provider': ['src/oauth'],
  '@open-policy-agent/opa-wasm': ['src/policy/engine.ts'],
  jose: ['src/policy/archive'],
  tar: ['src/policy/archive/read-archive.ts'],
  ajv: ['src/lib/schemas.ts'],
  pino: ['src/telemetry'],
  'gpt-tokenizer': ['src/providers'],
  'fastest-levenshtein': ['src/lib/text.ts'],
  'prom-client': ['src/telemetry'],
  commander: ['src/cli.ts', 'src/cli'],
  yaml: ['src/workbench'],
};

interface Import {
  from: string;
  to: string;
}

function sourceFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => path.join(folder, name))
    .filter((file) => /\.(ts|js)$/.test(file) && !file.endsWith('.d.ts') && statSync(file).isFile());
}

/** Static and dynamic imports, type imports included: a type is a dependency too. */
function importsOf(file: string): Import[] {
  const text = readFileSync(file, 'utf8');
  const pattern = /(?:\bfrom\s+|\bimport\s+|\bimport\(\s*|\brequire\(\s*)['"]([^'"]+)['"]/g;
  return [...text.matchAll(pattern)].map(([, to = '']) => ({ from: path.relative(root, file), to }));
}

const imports = sourceFiles(src).flatMap(importsOf);
const internal = imports
  .filter(({ to }) => to.startsWith('.'))
  .map(({ from, to }) => ({ from, to: path.relative(root, path.resolve(root, path.dirname(from), to)) }))
  .filter(({ to }) => to.startsWith(`src${path.sep}`));

const placeOf = (file: string): string => file.split(path.sep)[1] ?? '';

/** `store/ledger` of `src/store/ledger/ledger.ts`: a folder in a room. A file at the top of its room stands over its wings. */
const wingOf = (file: string): string | undefined => {
  const [, room = '', wing = '', ...rest] = file.split(path.sep);
  return rest.length === 0 ? undefined : `${room}/${wing}`;
};

const betweenWings = internal.flatMap(({ from, to }) => {
  const [a, b] = [wingOf(from), wingOf(to)];
  return a === undefined || b === undefined || a === b || placeOf(from) !== placeOf(to) ? [] : [{ from, to, a, b }];
});

/** Each cycle of a graph once, as `a -> b -> a`. */
function cyclesIn(edges: readonly (readonly [from: string, to: string])[]): string[] {
  const next = new Map<string, Set<string>>();
  for (const [from, to] of edges) next.set(from, (next.get(from) ?? new Set()).add(to));
  const done = new Set<string>();
  const cycles: string[] = [];
  const visit = (node: string, trail: string[]): void => {
    if (trail.includes(node)) {
      cycles.push([...trail.slice(trail.indexOf(node)), node].join(' -> '));
      return;
    }
    if (done.has(node)) return;
    for (const each of next.get(node) ?? []) visit(each, [...trail, node]);
    done.add(node);
  };
  for (const node of next.keys()) visit(node, []);
  return cycles;
}

/** A place where an object is asked for a property by a name that is computed. */
interface LookUp {
  readonly node: Node;
  readonly name: Node;
}

/** `table[name]`, `name in table` and `const { [name]: value } = table`. */
function lookUpsIn(file: Node): LookUp[] {
  const found: LookUp[] = [];
  const visit = (node: Node): void => {
    if (isElementAccessExpression(node)) found.push({ node, name: node.argumentExpression });
    if (isBinaryExpression(node) && node.operatorToken.kind === SyntaxKind.InKeyword) {
      found.push({ node, name: node.left });
    }
    if (isComputedPropertyName(node) && node.parent.kind === SyntaxKind.BindingElement) {
      found.push({ node: node.parent, name: node.expression });
    }
    node.forEachChild(visit);
  };
  visit(file);
  return found;
}

const INHERITED = Object.getOwnPropertyNames(Object.prototype);

/** Whether a name of this type may be one that every object inherits: any text, but not one of a few words, nor `${string}_API_KEY`. */
function mayBeInherited(checker: Checker, type: Type): boolean {
  const known = checker.getBaseConstraintOfType(type) ?? type;
  return (known.isUnionType() ? known.getTypes() : [known]).some((part) => {
    if (part.isTemplateLiteralType()) {
      const texts = checker
        .typeToString(part)
        .slice(1, -1)
        .split(/\$\{[^}]*\}/);
      return INHERITED.some((name) => texts.every((text) => name.includes(text)));
    }
    return (part.flags & (TypeFlags.String | TypeFlags.StringMapping | TypeFlags.Any | TypeFlags.Unknown)) !== 0;
  });
}

/** Every look-up in `src` by a name that the compiler knows as text alone. */
function looseLookUps(): string[] {
  const api = new API({ cwd: root });
  try {
    const [project] = api.updateSnapshot({ openProjects: [path.join(root, 'tsconfig.json')] }).getProjects();
    if (project === undefined) throw new Error('the compiler opened no project');
    const { program, checker } = project;
    return sourceFiles(src).flatMap((file) => {
      const source = file.includes('/generated/') ? undefined : program.getSourceFile(file);
      if (source === undefined) return [];
      const lookUps = lookUpsIn(source);
      const types = checker.getTypeAtLocation(lookUps.map(({ name }) => name));
      return lookUps
        .filter((_, index) => types[index] === undefined || mayBeInherited(checker, types[index]))
        .map(({ node }) => `${path.relative(root, file)}: ${source.text.slice(node.pos, node.end).trim()}`);
    });
  } finally {
    api.close();
  }
}

/** Look-ups by names that the code itself chose, where a call of `entryOf` would cost. */
const REVIEWED_LOOK_UPS = [
  'src/lib/text.ts: table[name]', // `entryOf` itself
  'src/providers/openai/answer.ts: answer[name]', // own names; `__proto__` is left out
  'src/providers/openai/answer.ts: fields[name]',
  'src/store/db/sql.ts: values[parameter.name]', // names that queries bind
];

describe('the architecture', () => {
  it('gives every folder and file directly under src a rank', () => {
    expect(readdirSync(src).filter((name) => RANKS[name] === undefined)).toEqual(['README.md']);
  });

  it('lets imports go downward only, and folders of one rank never import each other', () => {
    const faults = internal.filter(({ from, to }) => {
      const [a, b] = [placeOf(from), placeOf(to)];
      if (a === b) return false;
      if (ALLOWED_SIDEWAYS.some(([x, y]) => x === a && y === b)) return false;
      return (RANKS[b] ?? Number.POSITIVE_INFINITY) >= (RANKS[a] ?? -1);
    });
    expect(faults).toEqual([]);
  });

  it('has no cycle between files', () => {
    expect(cyclesIn(internal.map(({ from, to }) => [from, to]))).toEqual([]);
  });

  it('has no cycle between the wings of a room', () => {
    expect(cyclesIn(betweenWings.map(({ a, b }) => [a, b]))).toEqual([]);
  });

  it('never lets one wire import another', () => {
    const wires = ['anthropic', 'google', 'openai', 'sandbox'].map((name) => `providers/${name}`);
    expect(betweenWings.filter(({ a, b }) => wires.includes(a) && wires.includes(b))).toEqual([]);
  });

  it('lets fixtures and analyses meet only in the world that they share', () => {
    const apart = ['workbench/fixtures', 'workbench/analysis'];
    expect(betweenWings.filter(({ a, b }) => apart.includes(a) && apart.includes(b))).toEqual([]);
  });

  it('has no folder of more than 24 files, but that of the migrations, which only grows', () => {
    const sizes = new Map<string, number>();
    for (const file of sourceFiles(src)) sizes.set(path.dirname(file), (sizes.get(path.dirname(file)) ?? 0) + 1);
    expect(
      [...sizes]
        .filter(([folder, files]) => files > 24 && !folder.endsWith('/migrations'))
        .map(([folder]) => path.relative(root, folder)),
    ).toEqual([]);
  });

  it('has no two files of one base name but the chapters of adapters', () => {
    const adapter = /^src\/providers\/(?:anthropic|google|openai|sandbox)\//;
    const byName = Map.groupBy(
      sourceFiles(src).map((file) => path.relative(root, file)),
      (file) => path.basename(file),
    );
    expect([...byName.values()].filter((files) => files.filter((file) => !adapter.test(file)).length > 1)).toEqual([]);
  });

  it('has at most 380 files', () => {
    expect(sourceFiles(src).length).toBeLessThanOrEqual(380);
  });

  it('keeps each external package in its one home', () => {
    const faults = imports
      .filter(({ to }) => !to.startsWith('.') && !to.startsWith('node:'))
      .filter(({ from, to }) => {
        const name = to
          .split('/')
          .slice(0, to.startsWith('@') ? 2 : 1)
          .join('/');
        const homes = PACKAGE_HOMES[name];
        return homes === undefined || !homes.some((home) => from === home || from.startsWith(`${home}/`));
      });
    expect(faults).toEqual([]);
  });

  it('reads the environment in config/config.ts and nowhere else', () => {
    const readers = sourceFiles(src)
      .filter((file) => /process\.env\b/.test(readFileSync(file, 'utf8')))
      .map((file) => path.relative(root, file));
    expect(readers.filter((file) => !['src/main.ts', 'src/cli.ts'].includes(file))).toEqual(['src/config/config.ts']);
  });

  it('asks tables by names from outside through `entryOf` of lib/text.ts, so that none answers to `constructor`', {
    timeout: 120_000,
  }, () => {
    expect(looseLookUps().sort()).toEqual(REVIEWED_LOOK_UPS);
  });

  it('writes relative imports with their ending, since Node runs the sources as they are', () => {
    expect(imports.filter(({ to }) => to.startsWith('.') && !/\.(ts|js|json)$/.test(to))).toEqual([]);
  });

  it('has only what tools and custom demand besides the fixed top level', () => {
    const tracked = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).trimEnd().split('\n');
    const visible = new Set(tracked.map((file) => file.split('/')[0] ?? '').filter((name) => !name.startsWith('.')));
    expect([...visible].sort()).toEqual([
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'biome.json',
      'package-lock.json',
      'package.json',
      'policy',
      'schemas',
      'scripts',
      'src',
      'test',
      'tsconfig.json',
    ]);
  });
});

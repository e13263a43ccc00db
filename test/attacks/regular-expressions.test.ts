// Expressions that backtrack: a few kilobytes of hostile text would keep everyone waiting. Each one of the sources is linear.
import { readdirSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import path from 'node:path';
import * as acorn from 'acorn';
import { checkSync } from 'recheck';
import { describe, expect, it } from 'vitest';
import { schemaTexts } from '../../src/lib/schemas.ts';

// Its pure JavaScript: the others measure time, and answer differently on a busy machine.
process.env.RECHECK_BACKEND = 'pure';

const src = path.join(import.meta.dirname, '../../src');

interface Expression {
  readonly file: string;
  readonly source: string;
  readonly flags: string;
}

const isNode = (value: unknown): value is acorn.Node => typeof value === 'object' && value !== null && 'type' in value;

function* nodesIn(value: unknown): Generator<acorn.Node> {
  if (isNode(value)) yield value;
  if (typeof value !== 'object' || value === null) return;
  for (const inside of Object.values(value)) if (typeof inside === 'object') yield* nodesIn(inside);
}

const textOf = (node: acorn.AnyNode | undefined): string | undefined =>
  node?.type === 'Literal' && typeof node.value === 'string' ? node.value : undefined;

/** What `RegExp` is called with; undefined for another call, a text that is not known here as `unknown`. */
function constructed(node: acorn.AnyNode): Pick<Expression, 'source' | 'flags'> | 'unknown' | undefined {
  if (node.type !== 'NewExpression' && node.type !== 'CallExpression') return undefined;
  if (node.callee.type !== 'Identifier' || node.callee.name !== 'RegExp') return undefined;
  const [source, flags] = [textOf(node.arguments[0]), textOf(node.arguments[1])];
  return source === undefined ? 'unknown' : { source, flags: flags ?? '' };
}

const expressions: Expression[] = [];
const unknown: string[] = [];
for (const name of readdirSync(src, { recursive: true, encoding: 'utf8' })) {
  if (!/\.(ts|js)$/.test(name) || name.endsWith('.d.ts')) continue;
  const file = name.split(path.sep).join('/');
  const text = readFileSync(path.join(src, name), 'utf8');
  const program = acorn.parse(name.endsWith('.ts') ? stripTypeScriptTypes(text) : text, {
    ecmaVersion: 'latest',
    sourceType: 'module',
  });
  for (const node of nodesIn(program)) {
    const each = node as acorn.AnyNode;
    if (each.type === 'Literal' && each.regex) {
      expressions.push({ file, source: each.regex.pattern, flags: each.regex.flags });
    }
    const made = constructed(each);
    if (made === 'unknown') unknown.push(file);
    else if (made !== undefined) expressions.push({ file, ...made });
  }
}

/** Patterns of the schemas, of which ajv makes regular expressions. */
function patternsIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([keyword, inner]) => {
    if (keyword === 'pattern' && typeof inner === 'string') return [inner];
    const names = keyword === 'patternProperties' ? Object.keys(inner) : [];
    return [...names, ...patternsIn(inner)];
  });
}

for (const [name, text] of schemaTexts()) {
  for (const source of patternsIn(JSON.parse(text))) expressions.push({ file: `schemas/${name}`, source, flags: 'u' });
}

interface Reviewed extends Expression {
  readonly why: string;
}

/** Not linear, and of no harm: all that these see is short. */
const SHORT: readonly Reviewed[] = [
  { file: 'domain/limits.ts', source: '0+$', flags: '', why: 'twelve digits' },
  { file: 'providers/providers.ts', source: '\\/+$', flags: '', why: 'the path of a URL of at most 2,048 characters' },
];

/** Linear, as a person has seen: an automaton does not tell. */
const UNPROVED: readonly Reviewed[] = [
  {
    file: 'schemas/config.json',
    source: '^([0-9A-Fa-f]{64}|[A-Za-z0-9+/_-]{43}=?)(, ?([0-9A-Fa-f]{64}|[A-Za-z0-9+/_-]{43}=?))*$',
    flags: 'u',
    why: 'its pieces have fixed lengths',
  },
  {
    file: 'policy/engine.ts',
    source: '(?<!\\\\)(?:\\\\\\\\)*\\\\ud[89a-f]',
    flags: '',
    why: 'begins once in each run of backslashes',
  },
  {
    file: 'providers/google/thinking.ts',
    source: '^(?:models\\/)?gemini-(\\d+)(?:\\.(\\d+))?(?!\\d)',
    flags: '',
    why: 'the second number begins where the first one ends',
  },
  {
    file: 'providers/anthropic/thinking.ts',
    source: 'claude-(?:(?<family>[a-z]+)-)?(?<major>\\d{1,2})(?:[-.](?<minor>\\d{1,2}))?(?!\\d)',
    flags: '',
    why: 'numbers have two digits, and a family has one end',
  },
];

/** The automata of these take minutes. What they see is cut to 4,096 characters. */
const UNPROVED_FILES = ['providers/wire/upstream-error.ts'];

const nameOf = ({ file, source, flags }: Expression): string => `${file}: /${source}/${flags}`;

/** Repeated more often than this, a piece counts as repeated without bound: that has more ways to match, never fewer. */
const FEW = 8;

/** The same with small automata. */
const unbounded = (source: string): string =>
  source.replace(/\{(\d+)(,?)(\d*)\}/g, (all, least: string, comma: string, most: string) => {
    if (comma === ',' && most === '') return least === '0' ? '*' : '+';
    if (Number(comma === '' ? least : most) <= FEW) return all;
    return least === '0' ? '*' : '+';
  });

describe('every regular expression of the sources', () => {
  it('is found', () => {
    expect(expressions.length).toBeGreaterThan(200);
    expect([...SHORT, ...UNPROVED].map(nameOf).filter((name) => !expressions.map(nameOf).includes(name))).toEqual([]);
  });

  it('is written down where it is used, but for three that are made of our own words', () => {
    expect([...new Set(unknown)].sort()).toEqual([
      'admin/providers/custom-models.ts',
      'cli/terminal/arguments.ts',
      'config/config.ts',
    ]);
  });

  it('takes time in proportion to the text, proved by its automaton', { timeout: 600_000 }, () => {
    const reviewed = new Set([...SHORT, ...UNPROVED].map(nameOf));
    const judged = expressions.filter((each) => !reviewed.has(nameOf(each)) && !UNPROVED_FILES.includes(each.file));
    const different = new Map(judged.map((each) => [`${each.source}/${each.flags}`, each]));

    const faults = [...different.values()].filter(
      ({ source, flags }) =>
        checkSync(unbounded(source), flags, { checker: 'automaton', timeout: 300_000 }).status !== 'safe',
    );

    expect(faults.map(nameOf)).toEqual([]);
  });

  it('is done with 16 kB of hostile text at once', () => {
    const short = new Set(SHORT.map(nameOf));
    const slow = expressions.filter((each) => {
      const expression = new RegExp(each.source, each.flags);
      return !short.has(nameOf(each)) && hostileTexts(each.source).some((text) => milliseconds(expression, text) > 100);
    });

    expect(slow.map(nameOf)).toEqual([]);
  });
});

const SIZE = 16 * 1024;

/** What stands in the expression and what could, each many times, behind each beginning of it, with an end that nothing expects. */
function hostileTexts(source: string): string[] {
  const words = [...new Set(source.match(/[A-Za-z]+|[0-9]|[^A-Za-z0-9]/g) ?? [])];
  const pieces = [...words, ' ', '\t', 'a', 'A', 'a ', '0', '-a', '.0', ',a', '/a', '\\', '"', '{}'];
  const beginnings = ['', words.find((word) => /^[A-Za-z]+$/.test(word)) ?? '', words[0] ?? ''];
  return beginnings.flatMap((beginning) =>
    pieces.map((piece) => `${beginning}${piece.repeat(Math.ceil(SIZE / piece.length))}\u0000`),
  );
}

/** The least of three, for the machine has other things to do. */
function milliseconds(expression: RegExp, text: string): number {
  const times = [0, 1, 2].map(() => {
    const startedAt = performance.now();
    text.replace(expression, '');
    return performance.now() - startedAt;
  });
  return Math.min(...times);
}

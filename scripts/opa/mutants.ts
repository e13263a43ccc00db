/** One changed line of the Rego. */
export interface Mutant {
  /** Relative to the policy folder. */
  readonly file: string;
  /** 1-based. */
  readonly line: number;
  /** What was done to the line. */
  readonly change: string;
  readonly before: string;
  /** Empty: the line was dropped. */
  readonly after: string;
  /** The whole file with the changed line. */
  readonly source: string;
}

interface Operator {
  readonly change: string;
  /** Every occurrence is one mutant for each replacement. */
  readonly pattern: RegExp;
  readonly replacements: readonly string[];
}

const OPERATORS: readonly Operator[] = [
  { change: 'drop a negation', pattern: /\bnot /g, replacements: [''] },
  {
    change: 'add a negation',
    pattern: /(?<=^\t+)(?=[\w.]+(\[|\(| (==|!=|>|<=|in) |$))(?!some |not )/g,
    replacements: ['not '],
  },
  { change: 'add a negation', pattern: /(?<= if )(?=[\w.])(?!not )/g, replacements: ['not '] },
  { change: 'invert a comparison', pattern: / == /g, replacements: [' != '] },
  { change: 'invert a comparison', pattern: / != /g, replacements: [' == '] },
  { change: 'invert a comparison', pattern: / > /g, replacements: [' <= ', ' >= ', ' < '] },
  { change: 'invert a comparison', pattern: / <= /g, replacements: [' > ', ' < ', ' >= '] },
  { change: 'swap the rule sets', pattern: /\bscopes\.applied\b/g, replacements: ['scopes.enforced', 'scopes.shadow'] },
  { change: 'swap the rule sets', pattern: /\bscopes\.shadow\b/g, replacements: ['scopes.enforced', 'scopes.applied'] },
  { change: 'swap the rule sets', pattern: /\bscopes\.enforced\b/g, replacements: ['scopes.shadow'] },
  { change: 'swap the rule sets', pattern: /\]\.enforce\b/g, replacements: ['].shadow'] },
  { change: 'swap the modes', pattern: /"enforce"/g, replacements: ['"shadow"'] },
  { change: 'swap the modes', pattern: /"shadow"/g, replacements: ['"enforce"'] },
  {
    change: 'fix the scope',
    pattern: /\b(applied|subject)\.scope\b/g,
    replacements: ['"key"', '"member"', '"group"', '"organization"'],
  },
  { change: 'swap the effects', pattern: /(?<!_)\ballow_(?=\w)/g, replacements: ['deny_'] },
  { change: 'swap the effects', pattern: /(?<!_)\bdeny_(?=\w)/g, replacements: ['allow_'] },
  { change: 'swap the effects', pattern: /"allow"/g, replacements: ['"deny"'] },
  { change: 'swap the effects', pattern: /"deny"/g, replacements: ['"allow"'] },
  { change: 'swap an attribute', pattern: /(?<=\b|_)input(?=_price|Price)/g, replacements: ['output'] },
  { change: 'swap an attribute', pattern: /(?<=\b|_)output(?=_price|Price)/g, replacements: ['input'] },
  { change: 'swap an attribute', pattern: /\boffer\.input\b/g, replacements: ['offer.output'] },
  { change: 'swap an attribute', pattern: /\boffer\.output\b/g, replacements: ['offer.input'] },
  { change: 'swap an attribute', pattern: /\bcandidate\.names\b/g, replacements: ['candidate.provider_names'] },
  { change: 'swap an attribute', pattern: /\bcandidate\.provider_names\b/g, replacements: ['candidate.names'] },
  { change: 'swap an attribute', pattern: /\binput\.client_ip\b/g, replacements: ['null'] },
  { change: 'change a constant', pattern: /(?<=")\w*(?=")/g, replacements: ['other'] },
  { change: 'change a constant', pattern: /"free"/g, replacements: ['"paid"'] },
  { change: 'change a constant', pattern: /"paid"/g, replacements: ['"free"'] },
  { change: 'change a constant', pattern: /"moderation"/g, replacements: ['"image"', '"chat"'] },
  { change: 'change a constant', pattern: /(?<=[ [])0\b/g, replacements: ['1'] },
  { change: 'change a constant', pattern: /\btrue\b/g, replacements: ['false'] },
  { change: 'change a constant', pattern: /\bfalse\b/g, replacements: ['true'] },
  { change: 'swap a set operation', pattern: /(?<=[\w)]) \| (?=[\w(])/g, replacements: [' & '] },
  { change: 'swap a set operation', pattern: / - (?=_)/g, replacements: [' | ', ' & '] },
  { change: 'take one part of two', pattern: /\barray\.concat\(([^(),]+), ([^(),]+)\)/g, replacements: ['$1', '$2'] },
  { change: 'swap a builtin', pattern: /\bstartswith\b/g, replacements: ['endswith', 'contains'] },
  { change: 'swap a builtin', pattern: /\bnet\.cidr_contains\b/g, replacements: ['net.cidr_intersects'] },
  { change: 'swap the arguments', pattern: /(?<=[\w]\()([\w.]+), ([\w.]+)(?=\))/g, replacements: ['$2, $1'] },
  { change: 'drop the line', pattern: /^.+$/g, replacements: [''] },
];

/** Every mutant of one Rego file, in the order of its lines; comments, the package and imports are left alone. */
export function mutantsOf(file: string, source: string): Mutant[] {
  const lines = source.split('\n');
  const seen = new Set<string>([source]);
  return lines.flatMap((before, index) => {
    if (/^\s*(#|package |import |$)/.test(before)) return [];
    return changedLines(before).flatMap(({ change, after }) => {
      const changed = lines.with(index, after).join('\n');
      if (seen.has(changed)) return [];
      seen.add(changed);
      return [{ file, line: index + 1, change, before: before.trim(), after: after.trim(), source: changed }];
    });
  });
}

/** Dropping a line with a bracket whose partner stands elsewhere only breaks the syntax. */
const isWhole = (line: string): boolean =>
  ['()', '[]', '{}'].every(([open = '', close = '']) => line.split(open).length === line.split(close).length);

function changedLines(line: string): { change: string; after: string }[] {
  return OPERATORS.filter(({ change }) => change !== 'drop the line' || isWhole(line)).flatMap(
    ({ change, pattern, replacements }) =>
      [...line.matchAll(pattern)].flatMap((match) =>
        replacements.map((replacement) => ({ change, after: replaced(line, match, replacement) })),
      ),
  );
}

const replaced = (line: string, match: RegExpExecArray, replacement: string): string =>
  line.slice(0, match.index) +
  replacement.replaceAll(/\$(\d)/g, (_, group: string) => match[Number(group)] ?? '') +
  line.slice(match.index + match[0].length);

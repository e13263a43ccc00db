// The pages of the repository that tell people what there is: the README, and one page for each part next to what implements it.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));

const NAMES = [
  'README.md',
  'src/admin/README.md',
  'src/config/README.md',
  'src/core/README.md',
  'src/cli/README.md',
  'src/domain/README.md',
  'src/http/README.md',
  'src/mcp/README.md',
  'src/store/README.md',
  'src/README.md',
  'test/README.md',
  'test/attacks/README.md',
  'scripts/bench/README.md',
  'scripts/deploy/README.md',
  'policy/README.md',
  'policy/reference.md',
  'policy/plan-and-apply.md',
  'policy/bundles.md',
];

/** Each page by its path from the root, in the order in which they are listed. */
export const pages: ReadonlyMap<string, string> = new Map(
  NAMES.map((name) => [name, readFileSync(path.join(root, name), 'utf8')]),
);

export const readme = pages.get('README.md') ?? '';

/** All of them, one after the other. */
export const documentation = [...pages.values()].join('\n\n');

/** The rows, cells trimmed, of every table of every page whose first column has this title. */
export function tables(title: string): string[][][] {
  const found = documentation.split(/\n{2,}/).filter((block) => block.startsWith('| '));
  const parsed = found.map((block) =>
    block
      .trimEnd()
      .split('\n')
      .map((line) =>
        line
          .slice(1, -1)
          .split(' | ')
          .map((cell) => cell.trim()),
      ),
  );
  return parsed.filter(([head]) => head?.[0] === title).map((rows) => rows.slice(2));
}

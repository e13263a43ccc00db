// Runs a script of ours (`scripts/x.ts`) or an installed tool (`vitest run`) on the pinned Node, in the project's root.
import path from 'node:path';
import { cliCommand, commandOf, findNode, root } from './runtime.js';
import { become } from './spawn.js';

const PACKAGE_OF = { vitest: 'vitest', tsc: 'typescript', biome: '@biomejs/biome' };

const [target = '', ...args] = process.argv.slice(2);
const packageName = PACKAGE_OF[target];
const script = packageName === undefined ? path.join(root, target) : commandOf(packageName, target);
const node = findNode();
// Tools start children by the name `node`: those must be the pinned one too.
const env = {
  NODE_COMPILE_CACHE: cliCommand.env.NODE_COMPILE_CACHE,
  ...process.env,
  PATH: `${path.dirname(node)}${path.delimiter}${process.env.PATH ?? ''}`,
};
become(node, ['--disable-warning=ExperimentalWarning', script, ...args], { cwd: root, env });

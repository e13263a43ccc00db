#!/usr/bin/env node
// The launcher: starts the command line on the pinned Node, from any folder.
import path from 'node:path';
import { findNode, root } from './runtime.js';
import { become } from './spawn.js';

become(findNode(), [
  '--disable-warning=ExperimentalWarning',
  path.join(root, 'src', 'cli.ts'),
  ...process.argv.slice(2),
]);

#!/usr/bin/env node
// The launcher: starts the command line on the pinned Node, from any folder.
import { cliCommand, findNode } from './runtime.js';
import { become } from './spawn.js';

const { args, env } = cliCommand;
become(findNode(), [...args, ...process.argv.slice(2)], { env: { ...env, ...process.env } });

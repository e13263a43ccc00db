import type { Command } from 'commander';
import type { Environment } from '../run/workspace.ts';
import { analysisCommands } from './analysis-commands.ts';
import { exportCommand } from './export-command.ts';
import { folderCommands } from './folder-commands.ts';
import { generateCommand } from './generate-command.ts';
import { policyTestCommand } from './policy-test-command.ts';

/** `portcullis policy …`. */
export function policyCommands(program: Command, env: Environment): void {
  const policy = program.command('policy').description('Test and analyse what the rules permit.');
  policyTestCommand(policy, env);
  analysisCommands(program, policy, env);
  folderCommands(policy, env);
  generateCommand(policy, env);
  exportCommand(policy, env);
}

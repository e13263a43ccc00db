// The tutorial in policy/README.md, followed: each file is written, each command run, and each output is what is pasted.
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { createCommandLine } from '../cli/command-line.ts';
import { childEnv } from '../support/network-guard-env.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(path.join(root, 'policy/README.md'), 'utf8');
const tutorial = page.slice(page.indexOf('## Ten minutes'), page.indexOf('## The format'));

interface Step {
  /** The file to write, or the command to run. */
  readonly file?: string;
  readonly command?: string;
  /** What it holds, or prints. */
  readonly text: string;
}

/** Files are named at the end of the paragraph before them; commands begin with `$ `. */
function stepsOf(text: string): Step[] {
  const blocks = text.matchAll(/(?:`([^`\n]+)`:\n\n)?```(yaml|console)\n([\s\S]*?)```/g);
  return [...blocks].flatMap(([, file = '', language, inside = '']): Step[] =>
    language === 'yaml'
      ? [{ file, text: inside }]
      : inside
          .split(/^\$ /m)
          .slice(1)
          .map((run) => ({ command: run.slice(0, run.indexOf('\n')), text: run.slice(run.indexOf('\n') + 1) })),
  );
}

/** Ids and the digest of the policy differ. */
const masked = (text: string): string =>
  text.replace(/_[0-9a-f]{32}/g, '_…').replace(/policy [0-9a-f]{12}/g, 'policy …');

it('gives what it says', { timeout: 120_000 }, async () => {
  const portcullis = await createCommandLine();
  try {
    const launcher = path.join(root, 'scripts/portcullis.js');
    const prelude = `portcullis() { "${process.execPath}" "${launcher}" "$@"; }; export DATA_DIR="${portcullis.folder}";`;
    const steps = stepsOf(tutorial);
    expect(steps.length).toBeGreaterThanOrEqual(12);
    for (const { file, command, text } of steps) {
      if (command === undefined) {
        const place = path.join(portcullis.folder, file ?? '');
        mkdirSync(path.dirname(place), { recursive: true });
        writeFileSync(place, text);
      } else {
        const printed = await new Promise<string>((resolve) => {
          execFile(
            'sh',
            ['-c', `${prelude} ${command} 2>&1`],
            { cwd: portcullis.folder, env: childEnv() },
            (_, stdout) => resolve(stdout),
          );
        });
        expect([command, masked(printed)]).toEqual([command, masked(text)]);
      }
    }
  } finally {
    portcullis.close();
  }
});

import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Runs `opa` with arguments in the project's root and gives its output. Throws an error with what `opa` said. */
export interface Opa {
  readonly version: string;
  run(...args: string[]): Buffer;
}

const here = fileURLToPath(new URL('.', import.meta.url));
const root = fileURLToPath(new URL('../..', import.meta.url));

/** The one place that pins OPA is go.mod. */
const version =
  /open-policy-agent\/opa v(\S+)/.exec(readFileSync(new URL('go.mod', import.meta.url), 'utf8'))?.[1] ?? '';

/** Of one run: decisions of thousands of cases. */
const MAX_OUTPUT_BYTES = 256 * 1024 * 1024;

export const MISSING_OPA =
  `Rego cannot be compiled here: install opa ${version} on the PATH, or Go 1.26 or later ` +
  '(which then fetches it). Running and testing Portcullis needs neither.';

/** The pinned `opa`: on the PATH, or made by Go; null where there is neither. */
export function findOpa(): Opa | null {
  const { stdout } = spawnSync('opa', ['version'], { encoding: 'utf8' });
  if (/^Version: (\S+)/m.exec(stdout ?? '')?.[1] === version) return { version, run: runner('opa') };
  if (spawnSync('go', ['version']).status !== 0) return null;
  execFileSync('go', ['tool', 'opa', 'version'], { cwd: here, stdio: ['ignore', 'ignore', 'inherit'] });
  const binary = execFileSync('go', ['tool', '-n', 'opa'], { cwd: here, encoding: 'utf8' }).trim();
  return { version, run: runner(binary) };
}

function runner(command: string): Opa['run'] {
  return (...args) => {
    const { status, stdout, stderr, error } = spawnSync(command, args, { cwd: root, maxBuffer: MAX_OUTPUT_BYTES });
    if (error !== undefined) throw error;
    if (status !== 0) throw new Error(`opa ${args[0]} failed:\n${stderr.toString()}${stdout.toString()}`);
    return stdout;
  };
}

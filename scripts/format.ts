import { spawnSync } from 'node:child_process';
import path from 'node:path';

const root = path.join(import.meta.dirname, '..');

/** A source as `npm run format` leaves it. @param name by its ending Biome knows the language */
export function format(name: string, source: string): string {
  const biome = path.join(root, 'node_modules/@biomejs/biome/bin/biome');
  const args = [biome, 'format', '--colors=off', `--stdin-file-path=${name}`];
  const run = spawnSync(process.execPath, args, { cwd: root, input: source, encoding: 'utf8', maxBuffer: 2 ** 26 });
  if (run.status !== 0) throw new Error(`cannot format ${name}: ${run.stderr}`);
  return run.stdout;
}

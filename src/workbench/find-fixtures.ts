import { existsSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import type { FixtureFile, FixtureWorld, LoadedFixture } from './fixture-file.ts';
import { readFixtureFile } from './fixture-file.ts';
import { FixtureFault } from './fixture-source.ts';
import type { OnProgress } from './judges.ts';

/** Where fixtures are looked for, below the current folder, when nobody says where. */
export const DEFAULT_FOLDERS = ['test/policy/cases', 'policy/cases'] as const;
/** A folder of this name holds what fixtures include. */
const SHARED = 'shared';

export const isThere = (place: string, cwd: string): boolean => existsSync(path.resolve(cwd, place));

/**
 * The fixture files that some paths mean: files themselves, and every `.yaml` and `.yml` below a folder but for folders named
 * `shared`. Sorted, each once. The paths are there.
 */
export function findFixtureFiles(paths: readonly string[], cwd: string): string[] {
  const files = paths.map((each) => path.resolve(cwd, each)).flatMap(filesAt);
  return [...new Set(files)].sort();
}

function filesAt(place: string): string[] {
  if (!statSync(place).isDirectory()) return [place];
  return readdirSync(place, { withFileTypes: true }).flatMap((entry) => {
    if (entry.isDirectory()) return entry.name === SHARED ? [] : filesAt(path.join(place, entry.name));
    return /\.ya?ml$/.test(entry.name) ? [path.join(place, entry.name)] : [];
  });
}

/** Reads files; two fixtures of one name are a fault of the second. */
export function readFixtures(files: readonly string[], world: FixtureWorld, onProgress?: OnProgress): FixtureFile {
  const read = files.map((file, index) => {
    const result = readFixtureFile(file, world);
    onProgress?.(index + 1, files.length);
    return result;
  });
  const fixtures = read.flatMap((file) => file.fixtures);
  return { fixtures, faults: [...read.flatMap(({ faults }) => faults), ...repeatedNames(fixtures)] };
}

function repeatedNames(fixtures: readonly LoadedFixture[]): FixtureFault[] {
  const known = new Map<string, LoadedFixture>();
  const faults: FixtureFault[] = [];
  for (const fixture of fixtures) {
    const first = known.get(fixture.name);
    if (first === undefined) known.set(fixture.name, fixture);
    else {
      const { file, line } = first.place;
      faults.push(
        new FixtureFault(fixture.place, `The name "${fixture.name}" is taken by ${path.basename(file)}:${line}.`),
      );
    }
  }
  return faults;
}

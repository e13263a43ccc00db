import path from 'node:path';
import { counted } from '../../lib/text.ts';
import { POLICY_DIRECTORY } from '../../policy/bundle.ts';
import { createPdp } from '../../policy/pdp.ts';
import { writeExport } from '../../workbench/export/export-archive.ts';
import { exportCases, exportFiles, exportSubjects } from '../../workbench/export/export-bundle.ts';
import { findFixtureFiles, type LoadedFixture, readFixtures } from '../../workbench/fixtures/fixture-file.ts';
import { placeText } from '../../workbench/fixtures/fixture-reports.ts';
import { FixtureSources } from '../../workbench/fixtures/fixture-source.ts';
import type { World } from '../../workbench/world/world.ts';
import { worldDocument } from '../../workbench/world/world-document.ts';
import { print, printJson } from '../terminal/output.ts';
import { UsageError } from '../terminal/usage-faults.ts';
import type { Environment } from '../workspace.ts';
import { type Sources, worldSources } from './policy-world.ts';

export interface ExportOptions {
  readonly database?: string | true;
  readonly rules?: string;
  readonly output: string;
  readonly org?: string;
  readonly json?: true;
}

/** Writes the export and says what is in it. @throws UsageError for fixtures that make no sense */
export async function runExport(env: Environment, paths: readonly string[], options: ExportOptions): Promise<void> {
  const { output, org, json } = options;
  const sources = worldSources(env, org);
  const world = worldOf(sources, paths, options);
  const pdp = createPdp();
  const { subjects, cases } = exportCases(pdp, fixturesAt(sources, paths));
  const files = exportFiles({
    policyDirectory: POLICY_DIRECTORY,
    bundleDigest: pdp.bundleDigest,
    subjects: [...(world === undefined ? [] : exportSubjects(world)), ...subjects],
    cases,
    ...(world === undefined ? {} : { world: worldDocument(world) }),
  });
  writeExport(path.resolve(output), files);
  const ofWorld = world === undefined ? 0 : exportSubjects(world).length;
  if (json) printJson({ path: output, bundleDigest: pdp.bundleDigest, subjects: ofWorld, cases: cases.length });
  else
    print(
      `Wrote the policy, the rules of ${counted(ofWorld, 'subject')} and ${counted(cases.length, 'case')} to ${output}.`,
    );
}

/** Undefined: fixtures alone are exported. */
function worldOf(sources: Sources, paths: readonly string[], { database, rules }: ExportOptions): World | undefined {
  if (rules !== undefined) return sources.at(rules);
  if (typeof database === 'string') return sources.at(database);
  return database || paths.length === 0 ? sources.current() : undefined;
}

function fixturesAt({ catalog }: Sources, paths: readonly string[]): readonly LoadedFixture[] {
  const cwd = process.cwd();
  const { fixtures, faults } = readFixtures(findFixtureFiles(paths, cwd), {
    sources: new FixtureSources(),
    realCatalog: () => catalog,
  });
  const [fault] = faults;
  if (fault !== undefined) throw new UsageError(`${placeText(fault.place, cwd)}: ${fault.message}`);
  return fixtures;
}

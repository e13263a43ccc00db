import type { Catalog } from '../catalog/catalog.ts';
import { getOrMake } from '../domain/get-or-make.ts';
import type { Pdp } from '../policy/pdp.ts';
import { measureCoverage } from './coverage.ts';
import { findFixtureFiles, readFixtures } from './find-fixtures.ts';
import type { FixtureWorld } from './fixture-file.ts';
import type { FixtureFault } from './fixture-source.ts';
import { rulesOfWorld, withRulesOf } from './live-rules.ts';
import type { Report } from './report-text.ts';
import { runFixtures } from './run-fixtures.ts';
import type { World } from './world.ts';

export interface PolicyTest {
  readonly pdp: Pdp;
  readonly sources: FixtureWorld['sources'];
  /** Asked once, however many fixtures say `catalog: real`. */
  readonly realCatalog: FixtureWorld['realCatalog'];
  /** Files and folders. */
  readonly paths: readonly string[];
  readonly cwd: string;
  /** Only fixtures whose name holds this text, in whatever case. */
  readonly filter?: string;
  readonly coverage: boolean;
  /** Whose rules are tested, instead of the fixtures' own. */
  readonly world?: World;
  readonly onProgress?: (stage: Stage, done: number, all: number) => void;
}

/** Of a run: what is counted are files, then fixtures. */
export type Stage = 'reading' | 'running' | 'measuring';

/** The result, or the faults that kept it from running. */
export type PolicyTestResult = { readonly report: Report } | { readonly faults: readonly FixtureFault[] };

/** Finds, reads and runs fixtures; every path is there. */
export function testPolicy(test: PolicyTest): PolicyTestResult {
  const { pdp, sources, realCatalog, world, filter = '', onProgress } = test;
  const progressOf = (stage: Stage) => (done: number, all: number) => onProgress?.(stage, done, all);
  const files = findFixtureFiles(test.paths, test.cwd);
  const wanted = (name: string): boolean => name.toLowerCase().includes(filter.toLowerCase());
  const catalogs = new Map<string, Catalog>();
  const fixtureWorld: FixtureWorld = {
    sources,
    realCatalog: () => getOrMake(catalogs, 'real', realCatalog),
    wanted,
    ...(world === undefined ? {} : { rulesFor: (given, place) => withRulesOf(world, given, place) }),
  };
  const { fixtures, faults } = readFixtures(files, fixtureWorld, progressOf('reading'));
  if (faults.length > 0) return { faults };
  const results = runFixtures(pdp, fixtures, progressOf('running'));
  const others = world === undefined ? [] : rulesOfWorld(world);
  return {
    report: {
      bundleDigest: pdp.bundleDigest,
      results,
      ...(test.coverage ? { coverage: measureCoverage(pdp, results, others, progressOf('measuring')) } : {}),
    },
  };
}

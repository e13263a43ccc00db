import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { createCatalog } from '../../src/catalog/catalog.ts';
import { systemClock } from '../../src/domain/time.ts';
import { findFixtureFiles, type LoadedFixture, readFixtures } from '../../src/workbench/fixtures/fixture-file.ts';
import { FixtureSources } from '../../src/workbench/fixtures/fixture-source.ts';

export const CASES = fileURLToPath(new URL('../../test/policy/cases', import.meta.url));

/** The project's own fixtures, on the catalogue without upstreams. @throws Error for the first one that makes no sense. */
export function loadFixtures(folder: string = CASES): LoadedFixture[] {
  const realCatalog = () => createCatalog({ sandbox: true, upstreams: [], clock: systemClock });
  const { fixtures, faults } = readFixtures(findFixtureFiles([folder], folder), {
    sources: new FixtureSources(),
    realCatalog,
  });
  const [fault] = faults;
  if (fault !== undefined) {
    throw new Error(`${path.relative(folder, fault.place.file)}:${fault.place.line} ${fault.message}`);
  }
  return fixtures.filter(({ skip }) => skip === undefined);
}

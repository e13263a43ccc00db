import path from 'node:path';
import { createCatalog } from '../../catalog/catalog.ts';
import { systemClock } from '../../domain/time.ts';
import { plainText } from '../../lib/text.ts';
import type { ArchiveFiles } from '../../policy/archive/read-archive.ts';
import type { Pdp } from '../../policy/pdp.ts';
import { readFixtures } from '../fixtures/find-fixtures.ts';
import { FixtureSources } from '../fixtures/fixture-source.ts';
import { placeText } from '../fixtures/report-text.ts';
import { runFixtures, triedIn } from '../fixtures/run-fixtures.ts';

/** Fixtures and what they include: nothing outside of the bundle can be named. */
export const isFixture = (name: string): boolean => /^fixtures\/.+\.ya?ml$/.test(name);

const ROOT = path.resolve('/');

/** The first thing that is not as the bundle's own fixtures expect it, as a sentence; null: all is. */
export function fixtureFault(pdp: Pdp, files: ArchiveFiles): string | null {
  const texts = new Map(
    [...files]
      .filter(([name]) => isFixture(name))
      .map(([name, text]) => [path.resolve(ROOT, name), text.toString('utf8')]),
  );
  const { fixtures, faults } = readFixtures(
    [...texts.keys()].filter((file) => !file.split(path.sep).includes('shared')).sort(),
    {
      sources: new FixtureSources(texts),
      realCatalog: () => createCatalog({ sandbox: true, upstreams: [], clock: systemClock }),
    },
  );
  const [fault] = faults;
  if (fault !== undefined) return `${placeText(fault.place, ROOT)}: ${plainText(fault.message)}`;
  for (const result of runFixtures(pdp, fixtures)) {
    for (const { label, differences } of triedIn(result)) {
      const [difference] = differences;
      if (difference === undefined) continue;
      const { expected, came: got } = difference;
      return plainText(`"${result.fixture.name}", ${label}: expected ${expected}, got ${got}.`);
    }
  }
  return null;
}

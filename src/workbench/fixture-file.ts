import type { Catalog } from '../catalog/catalog.ts';
import { nameWarnings } from '../core/rule-warnings.ts';
import type { Fixture, FixtureExpectation, FixtureRequests } from '../generated/types.ts';
import { validateFixture } from '../generated/validators.js';
import { expectEach, type FixtureCase } from './fixture-expectations.ts';
import { type Given, readGiven } from './fixture-given.ts';
import { type Axis, crossRequests, type FixtureRequest, placeOfEntry, readAxes } from './fixture-requests.ts';
import type { GivenRule } from './fixture-rules.ts';
import { checkedShape } from './fixture-shape.ts';
import { FixtureFault, type FixtureSources, type Place, type SourceDocument } from './fixture-source.ts';
import { rulesOf } from './fixture-subjects.ts';
import { namesIn, readWrites, type WriteCase } from './fixture-writes.ts';
import { listOf } from './lists.ts';

/** A fixture that makes sense, ready to run. */
export interface LoadedFixture {
  readonly name: string;
  readonly place: Place;
  /** Why it is not run. */
  readonly skip?: string;
  readonly given: Given;
  readonly axes: Readonly<Record<Axis, readonly string[]>>;
  readonly cases: readonly FixtureCase[];
  readonly writes: readonly WriteCase[];
  /** What is accepted but may not mean what was meant. */
  readonly warnings: readonly FixtureWarning[];
}

interface FixtureWarning {
  /** Of the rule. */
  readonly place: Place;
  readonly message: string;
}

export interface FixtureWorld {
  readonly sources: FixtureSources;
  /** The catalogue of this installation, for `catalog: real`. */
  readonly realCatalog: () => Catalog;
  /** Whether a fixture of this name is asked for; the others are only checked for their shape. */
  readonly wanted?: (name: string) => boolean;
  /** What a fixture gives, or the same with rules from elsewhere. @throws FixtureFault */
  readonly rulesFor?: (given: Given, place: Place) => Given;
}

/** The fixtures of one file, in their order; those that make no sense are `faults`. */
export interface FixtureFile {
  readonly fixtures: readonly LoadedFixture[];
  readonly faults: readonly FixtureFault[];
}

/** Reads one file. Never throws for what is written in it. */
export function readFixtureFile(file: string, world: FixtureWorld): FixtureFile {
  const fixtures: LoadedFixture[] = [];
  const faults: FixtureFault[] = [];
  const guard = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      if (!(error instanceof FixtureFault)) throw error;
      faults.push(error);
    }
  };
  guard(() => {
    const documents = world.sources.read(file);
    if (documents.length === 0) throw new FixtureFault({ file, line: 1, column: 1 }, 'The file holds no fixture.');
    for (const document of documents) guard(() => fixtures.push(...loadFixture(document, world)));
  });
  return { fixtures, faults };
}

/** One, or none when it is not asked for. */
function loadFixture(
  document: SourceDocument,
  { realCatalog, wanted = () => true, rulesFor = (given) => given }: FixtureWorld,
): LoadedFixture[] {
  const fixture = checkedShape(validateFixture, document);
  if (!wanted(fixture.name)) return [];
  const written = readGiven(document, ['given'], fixture.given, realCatalog);
  const given = rulesFor(written, document.placeOf(['given']));
  const loaded = {
    name: fixture.name,
    place: document.placeOf(['name']),
    ...(fixture.skip === undefined ? {} : { skip: fixture.skip }),
    given,
    ...readCases(document, fixture, given, [...rulesOf(written), ...rulesOf(given)]),
    writes: readWrites(document, fixture.writes),
    warnings: warningsOf(written),
  };
  return [loaded];
}

const NO_AXES: LoadedFixture['axes'] = { action: [], key: [], model: [], provider: [], address: [] };

/** The requests of a fixture with what is expected of them; of one that only writes rules, none. */
function readCases(
  document: SourceDocument,
  { requests: written, expect = [], writes }: Fixture,
  given: Given,
  rules: readonly GivenRule[],
): Pick<LoadedFixture, 'axes' | 'cases'> {
  if (written === undefined) {
    if (writes === undefined) throw new FixtureFault(document.placeOf([]), 'A fixture has requests, writes or both.');
    return { axes: NO_AXES, cases: [] };
  }
  const axes = readAxes(document, written, given);
  const requests = crossRequests(axes, given);
  requireKnownModels(document, written, expect, requests);
  return { axes, cases: expectEach(document, expect, axes, requests, rules) };
}

/** The warnings that a write of the rules would be answered with for names that the fixture's catalogue does not have. */
const warningsOf = (given: Given): FixtureWarning[] =>
  rulesOf(given).flatMap(({ rule, place }) =>
    place === undefined ? [] : nameWarnings(rule, namesIn(given.catalog)).map((message) => ({ place, message })),
  );

/** A name that nothing serves is a slip, unless the fixture says that it is not found. */
function requireKnownModels(
  document: SourceDocument,
  { model }: FixtureRequests,
  expect: readonly FixtureExpectation[],
  requests: readonly FixtureRequest[],
): void {
  const missing = expect.filter(({ error }) => error === 'not_found');
  for (const [index, name] of listOf(model).entries()) {
    if (requests.some(({ labels, candidates }) => labels.model === name && candidates.length > 0)) continue;
    if (missing.some((each) => each.model === undefined || listOf(each.model).includes(name))) continue;
    const place = placeOfEntry(document, ['requests', 'model'], model, index);
    throw new FixtureFault(place, `Nothing serves the model "${name}"; expect \`error: not_found\` if that is meant.`);
  }
}

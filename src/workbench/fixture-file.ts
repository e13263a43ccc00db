import type { Catalog } from '../catalog/catalog.ts';
import { KnownNames } from '../core/known-names.ts';
import { nameWarnings } from '../core/rule-warnings.ts';
import { getOrMake } from '../domain/get-or-make.ts';
import type { Fixture } from '../generated/types.ts';
import { validateFixture } from '../generated/validators.js';
import { expectEach, type FixtureCase } from './fixture-expectations.ts';
import { type Given, readGiven } from './fixture-given.ts';
import { type Axis, crossRequests, type FixtureRequest, placeOfEntry, readAxes } from './fixture-requests.ts';
import { checkedShape } from './fixture-shape.ts';
import { FixtureFault, type FixtureSources, type Place, type SourceDocument } from './fixture-source.ts';
import { rulesOf } from './fixture-subjects.ts';
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
  /** What is accepted but may not mean what was meant. */
  readonly warnings: readonly FixtureWarning[];
}

export interface FixtureWarning {
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
  const axes = readAxes(document, fixture.requests, given);
  const known = [...rulesOf(written), ...rulesOf(given)];
  const requests = crossRequests(axes, given);
  requireKnownModels(document, fixture, requests);
  const loaded = {
    name: fixture.name,
    place: document.placeOf(['name']),
    ...(fixture.skip === undefined ? {} : { skip: fixture.skip }),
    given,
    axes,
    cases: expectEach(document, fixture.expect, axes, requests, known),
    warnings: warningsOf(written),
  };
  return [loaded];
}

const namesIn = new WeakMap<Catalog, KnownNames>();

/** The warnings that a write of the rules would be answered with for names that the fixture's catalogue does not have. */
function warningsOf(given: Given): FixtureWarning[] {
  const { catalog } = given;
  const known = getOrMake(namesIn, catalog, () => new KnownNames(catalog));
  return rulesOf(given).flatMap(({ rule, place }) =>
    place === undefined ? [] : nameWarnings(rule, known).map((message) => ({ place, message })),
  );
}

/** A name that nothing serves is a slip, unless the fixture says that it is not found. */
function requireKnownModels(
  document: SourceDocument,
  { requests: { model }, expect }: Fixture,
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

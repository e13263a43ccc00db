import { CHOSEN } from '../core/auto-choices.ts';
import type { FixtureSet } from '../generated/types.ts';
import { type FixtureRequest, isAuto, placeOfEntry } from './fixture-requests.ts';
import type { GivenRule } from './fixture-rules.ts';
import { FixtureFault, type Path, type Place, type SourceDocument } from './fixture-source.ts';
import { listOf } from './lists.ts';

/** What a set of ids must be: these exactly, or with some and without others. Sorted. */
export type ExpectedSet =
  | { readonly exactly: readonly string[] }
  | { readonly includes: readonly string[]; readonly excludes: readonly string[] };

/** A set as it is written. */
export const idSet = (written: FixtureSet): ExpectedSet =>
  isPartly(written)
    ? { includes: listOf(written.includes).toSorted(), excludes: listOf(written.excludes).toSorted() }
    : { exactly: listOf(written).toSorted() };

type Partly = Exclude<FixtureSet, string | string[]>;

const isPartly = (written: FixtureSet): written is Partly => typeof written === 'object' && !Array.isArray(written);

/** The lists that a set is written as, each with its place. */
const listsIn = (at: Path, written: FixtureSet | undefined): [Path, string | string[] | undefined][] =>
  written !== undefined && isPartly(written)
    ? [
        [[...at, 'includes'], written.includes],
        [[...at, 'excludes'], written.excludes],
      ]
    : [[at, written]];

/** @throws FixtureFault for an id of no active rule */
export function requireIds(
  document: SourceDocument,
  at: Path,
  written: FixtureSet | undefined,
  rules: readonly GivenRule[],
): void {
  for (const [place, ids] of listsIn(at, written)) requireRules(document, place, ids, rules);
}

/** @throws FixtureFault for an id of no active rule */
export function requireRules(
  document: SourceDocument,
  at: Path,
  ids: string | string[] | undefined,
  rules: readonly GivenRule[],
): void {
  for (const [index, id] of listOf(ids).entries()) {
    if (rules.some(({ rule }) => rule.id === id)) continue;
    throw new FixtureFault(placeOfEntry(document, at, ids, index), `There is no active rule "${id}".`);
  }
}

/** @throws FixtureFault for an id of no rule in mode `report` */
export function requireReported(
  document: SourceDocument,
  at: Path,
  ids: string | string[] | undefined,
  rules: readonly GivenRule[],
): void {
  requireRules(document, at, ids, rules);
  for (const [index, id] of listOf(ids).entries()) {
    if (rules.some(({ rule }) => rule.id === id && rule.mode === 'report')) continue;
    throw new FixtureFault(placeOfEntry(document, at, ids, index), `The rule "${id}" is not in mode \`report\`.`);
  }
}

/** A request as a caller names it, in quotes. */
export const nameOf = ({ action, labels: { provider, model } }: FixtureRequest): string =>
  action === 'list' ? 'the list of models' : `"${provider === 'any' ? model : `${provider}/${model}`}"`;

/** A set of candidates of the request. @throws FixtureFault for what is none */
export function candidateSet(
  document: SourceDocument,
  at: Path,
  written: FixtureSet,
  request: FixtureRequest,
): ExpectedSet {
  if (written === 'none') return { exactly: [] };
  if (written === 'all') return { exactly: everyCandidate(document.placeOf(at), request) };
  if (!isPartly(written)) {
    for (const [index, id] of listOf(written).entries()) {
      requireCandidate(placeOfEntry(document, at, written, index), id, request);
    }
    return idSet(written);
  }
  const [includes = [], excludes = []] = listsIn(at, written).map(([place, entries]) =>
    listOf(entries).flatMap((entry, index) => meant(placeOfEntry(document, place, entries, index), entry, request)),
  );
  return { includes: [...new Set(includes)].sort(), excludes: [...new Set(excludes)].sort() };
}

function everyCandidate(place: Place, request: FixtureRequest): readonly string[] {
  const { candidates } = request;
  if (isAuto(request) && candidates.length > CHOSEN) {
    throw new FixtureFault(
      place,
      `"auto" chooses at most ${CHOSEN} of its ${candidates.length} candidates, never all.`,
    );
  }
  return candidates.map(({ id }) => id).sort();
}

/** A candidate, or every one that begins as an entry does which ends in `*`. */
function meant(place: Place, entry: string, request: FixtureRequest): readonly string[] {
  if (!entry.endsWith('*')) {
    requireCandidate(place, entry, request);
    return [entry];
  }
  const ids = request.candidates.map(({ id }) => id).filter((id) => id.startsWith(entry.slice(0, -1)));
  if (ids.length === 0) throw new FixtureFault(place, `No candidate of ${nameOf(request)} begins so.`);
  return ids;
}

/** Candidates that a message lists. */
const MOST_LISTED = 20;

/** @throws FixtureFault for an id of no candidate */
export function requireCandidate(place: Place, id: string, request: FixtureRequest): void {
  if (request.candidates.some((candidate) => candidate.id === id)) return;
  const ids = request.candidates.map((candidate) => candidate.id);
  const more = ids.length > MOST_LISTED ? ` and ${ids.length - MOST_LISTED} more` : '';
  const listed = ids.length === 0 ? 'none' : `${ids.slice(0, MOST_LISTED).join(', ')}${more}`;
  throw new FixtureFault(place, `"${id}" is no candidate of ${nameOf(request)}, which has ${listed}.`);
}

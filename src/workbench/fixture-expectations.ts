import type { FixtureExpectation } from '../generated/types.ts';
import { AXES, type Axis, type FixtureRequest, placeOfEntry } from './fixture-requests.ts';
import type { GivenRule } from './fixture-rules.ts';
import {
  candidateSet,
  type ExpectedSet,
  idSet,
  nameOf,
  requireCandidate,
  requireIds,
  requireReported,
  requireRules,
} from './fixture-sets.ts';
import { FixtureFault, type Path, type Place, type SourceDocument } from './fixture-source.ts';
import { listOf } from './lists.ts';

/** What must become of a request; a field that is absent is of no matter. Lists are sorted. */
export interface Expected {
  /** `refused`: not listed, so anything but a permit, or a policy that cannot judge. */
  readonly outcome: 'permit' | 'deny' | 'not_found' | 'unavailable' | 'refused';
  /** Candidate ids. */
  readonly permitted?: ExpectedSet;
  /** `<scope> <rule type>`, or the message. */
  readonly reason?: string;
  /** Of the reason. */
  readonly rules?: ExpectedSet;
  /** Rule ids by candidate. */
  readonly violations?: ReadonlyMap<string, readonly string[]>;
  readonly shadow?: ExpectedShadow;
  /** Of the expectation, or of the requests where there is none. */
  readonly place: Place;
}

interface ExpectedShadow {
  readonly permitted: ExpectedSet;
  readonly wouldDeny: readonly string[];
  readonly wouldAllow: readonly string[];
}

export interface FixtureCase {
  readonly request: FixtureRequest;
  readonly expected: Expected;
}

type Axes = Readonly<Record<Axis, readonly string[]>>;

/**
 * Each request with what is expected of it.
 * @param rules all that the fixture knows
 * @throws FixtureFault for an expectation that nothing could meet, and for two that mean one request
 */
export function expectEach(
  document: SourceDocument,
  expectations: readonly FixtureExpectation[],
  axes: Axes,
  requests: readonly FixtureRequest[],
  rules: readonly GivenRule[],
): FixtureCase[] {
  const unlisted: Expected = { outcome: 'refused', place: document.placeOf(['requests']) };
  const expected = new Map<FixtureRequest, Expected>();
  for (const [index, expectation] of expectations.entries()) {
    const at = ['expect', index];
    requireSense(document, at, expectation, axes, rules);
    for (const request of requests) {
      if (!means(expectation, request)) continue;
      if (expected.has(request)) {
        throw new FixtureFault(document.placeOf(at), `Two expectations mean ${describeRequest(request, axes)}.`);
      }
      expected.set(request, expectedOf(document, at, expectation, request));
    }
  }
  return requests.map((request) => ({ request, expected: expected.get(request) ?? unlisted }));
}

const means = (expectation: FixtureExpectation, { labels }: FixtureRequest): boolean =>
  AXES.every((axis) => expectation[axis] === undefined || listOf(expectation[axis]).includes(labels[axis]));

/** The axes on which requests differ, as `model=swift address=10.0.0.1`; the model always, but of a list the action. */
export const describeRequest = ({ labels }: FixtureRequest, axes: Axes): string =>
  AXES.filter((axis) => axis === (labels.action === 'list' ? 'action' : 'model') || axes[axis].length > 1)
    .map((axis) => `${axis}=${labels[axis]}`)
    .join(' ');

function requireSense(
  document: SourceDocument,
  at: Path,
  expectation: FixtureExpectation,
  axes: Axes,
  rules: readonly GivenRule[],
): void {
  const { permit, deny, error, violations, shadow } = expectation;
  const fault = (below: Path, message: string) => new FixtureFault(document.placeOf([...at, ...below]), message);
  if ([permit, deny, error].filter((outcome) => outcome !== undefined).length !== 1) {
    throw fault([], 'An expectation has exactly one of permit, deny and error.');
  }
  if (expectation.rules !== undefined && deny === undefined) throw fault(['rules'], '`rules` goes with `deny`.');
  if (error !== undefined && (violations ?? shadow) !== undefined) {
    throw fault([violations === undefined ? 'shadow' : 'violations'], 'There is no decision where there is an error.');
  }
  for (const axis of AXES) {
    for (const [index, text] of listOf(expectation[axis]).entries()) {
      if (axes[axis].includes(text)) continue;
      const place = placeOfEntry(document, [...at, axis], expectation[axis], index);
      throw new FixtureFault(place, `No request has the ${axis} "${text}".`);
    }
  }
  requireIds(document, [...at, 'rules'], expectation.rules, rules);
  for (const [candidate, ids] of Object.entries(violations ?? {})) {
    requireRules(document, [...at, 'violations', candidate], ids, rules);
  }
  requireReported(document, [...at, 'shadow', 'wouldDeny'], shadow?.wouldDeny, rules);
  requireReported(document, [...at, 'shadow', 'wouldAllow'], shadow?.wouldAllow, rules);
}

function expectedOf(
  document: SourceDocument,
  at: Path,
  { permit, deny, error, rules, violations, shadow }: FixtureExpectation,
  request: FixtureRequest,
): Expected {
  const place = document.placeOf(at);
  const none = request.candidates.length === 0;
  if (error !== undefined) {
    if (error === 'not_found' && request.action === 'list') throw new FixtureFault(place, 'A list is always found.');
    if (error === 'not_found' && !none) throw new FixtureFault(place, `${nameOf(request)} has a candidate.`);
    return { outcome: error, place };
  }
  if (request.action === 'list') requirePermitOnly(place, { deny, violations, shadow });
  else if (none) {
    throw new FixtureFault(place, `${nameOf(request)} has no candidate: only \`error: not_found\` can come.`);
  }
  return {
    outcome: deny === undefined ? 'permit' : 'deny',
    place,
    ...(permit === undefined ? {} : { permitted: candidateSet(document, [...at, 'permit'], permit, request) }),
    ...(deny === undefined || deny === 'any' ? {} : { reason: deny }),
    ...(rules === undefined ? {} : { rules: idSet(rules) }),
    ...(violations === undefined
      ? {}
      : { violations: violationMap(document, [...at, 'violations'], violations, request) }),
    ...(shadow === undefined
      ? {}
      : {
          shadow: {
            permitted: candidateSet(document, [...at, 'shadow', 'permit'], shadow.permit, request),
            wouldDeny: sorted(listOf(shadow.wouldDeny)),
            wouldAllow: sorted(listOf(shadow.wouldAllow)),
          },
        }),
  };
}

function requirePermitOnly(place: Place, others: Readonly<Record<string, unknown>>): void {
  const [wrong] = Object.entries(others).filter(([, value]) => value !== undefined);
  if (wrong === undefined) return;
  throw new FixtureFault(place, `A list has no \`${wrong[0]}\`: it is answered, and \`permit: none\` is an empty one.`);
}

const sorted = (texts: readonly string[]): readonly string[] => texts.toSorted();

function violationMap(
  document: SourceDocument,
  at: Path,
  written: NonNullable<FixtureExpectation['violations']>,
  request: FixtureRequest,
): ReadonlyMap<string, readonly string[]> {
  return new Map(
    Object.entries(written).map(([candidate, ids]) => {
      requireCandidate(document.placeOf([...at, candidate]), candidate, request);
      return [candidate, sorted(listOf(ids))];
    }),
  );
}

import type { Mapping } from '../../domain/model.ts';
import type { PolicyDecision, PolicyInput } from '../../generated/types.ts';
import { compileSubjectRules, dataDocument, PolicyFailure } from '../../policy/data-document.ts';
import { inputDocument } from '../../policy/input-document.ts';
import type { Pdp } from '../../policy/pdp.ts';
import { describeRequest } from '../fixtures/fixture-expectations.ts';
import type { LoadedFixture } from '../fixtures/fixture-file.ts';
import type { Given } from '../fixtures/fixture-given.ts';
import type { FixtureRequest } from '../fixtures/fixture-requests.ts';
import { calledCandidates, subjectsOf } from '../fixtures/judge-request.ts';
import type { World } from '../world/world.ts';

/** Rules of a subject as they stand in a data document. */
export interface ExportSubject {
  readonly id: string;
  /** JSON text. */
  readonly rules: string;
}

/** A call, and what the compiled policy decides about it. */
interface ExportCase {
  /** The fixture and the request, for people. */
  readonly name: string;
  readonly input: PolicyInput;
  readonly decision: PolicyDecision;
}

export interface ExportedCases {
  readonly subjects: readonly ExportSubject[];
  readonly cases: readonly ExportCase[];
}

/** What the policy says of a call that it cannot judge, before the gateway makes a failure of it. */
const UNJUDGED: PolicyDecision = { permitted: [], violations: [] };

/**
 * The requests of fixtures that ask the policy anything, with the rules of everyone in them. Subjects carry the name of their
 * fixture, so that all fixtures fit into one data document. Fixtures that are skipped are left out, and so are lists: nobody
 * decides about one.
 */
export function exportCases(pdp: Pdp, fixtures: readonly LoadedFixture[]): ExportedCases {
  const exported = fixtures.filter(({ skip }) => skip === undefined).map((fixture) => exportFixture(pdp, fixture));
  return { subjects: exported.flatMap(({ subjects }) => subjects), cases: exported.flatMap(({ cases }) => cases) };
}

function exportFixture(pdp: Pdp, { name, given, axes, cases }: LoadedFixture): ExportedCases {
  const subjects = new Map<string, ExportSubject>();
  for (const { available, id, rules } of [...given.keys.keys()].flatMap((key) => subjectsOf(given, key))) {
    if (!available) continue;
    subjects.set(id, { id: `${name} / ${id}`, rules: compileSubjectRules(rules.map(({ rule }) => rule)) });
  }
  const caseOf = (request: FixtureRequest, action: PolicyInput['action']): ExportCase => {
    const called = subjectsOf(given, request.labels.key).map(({ scope, id }) => ({ scope, id: `${name} / ${id}` }));
    const input = inputDocument(action, request.clientIp, called, judgedCandidates(pdp, given, request));
    const known = new Set(called.map(({ id }) => id));
    return {
      name: `${name}: ${describeRequest(request, axes)}`,
      input,
      decision: decided(
        pdp,
        input,
        [...subjects.values()].filter(({ id }) => known.has(id)),
      ),
    };
  };
  const asked = cases.flatMap(({ request }) => {
    const { action, candidates } = request;
    return action === 'list' || candidates.length === 0 ? [] : [caseOf(request, action)];
  });
  return { subjects: [...subjects.values()], cases: asked };
}

/** Where the policy cannot judge, it cannot choose for `auto` either. */
function judgedCandidates(pdp: Pdp, given: Given, request: FixtureRequest): readonly Mapping[] {
  try {
    return calledCandidates(pdp, given, request);
  } catch (failure) {
    if (failure instanceof PolicyFailure) return request.candidates;
    throw failure;
  }
}

function decided(pdp: Pdp, input: PolicyInput, subjects: readonly ExportSubject[]): PolicyDecision {
  try {
    return pdp.decide(input, dataDocument(subjects));
  } catch (failure) {
    if (failure instanceof PolicyFailure) return UNJUDGED;
    throw failure;
  }
}

/** The rules of everyone in a world. */
export const exportSubjects = ({ organizations, groups, members, keys }: World): ExportSubject[] =>
  [...organizations.values(), ...groups.values(), ...members.values(), ...keys.values()].map(({ id, rules }) => ({
    id,
    rules: compileSubjectRules(rules),
  }));

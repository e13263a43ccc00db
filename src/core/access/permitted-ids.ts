import type { Mapping } from '../../domain/model.ts';
import type { PolicyFacts, PolicyInput, PolicySubject } from '../../generated/types.ts';
import type { DataDocument } from '../../policy/data-document.ts';
import { inputDocument } from '../../policy/input-document.ts';
import type { Pdp } from '../../policy/pdp.ts';

/** Candidates in one evaluation: its cost grows with their square (src/core/README.md, "lists"). */
const BATCH = 64;

/** Each model is judged for the action that it serves. */
export function actionOf({ outputModalities }: Mapping): PolicyInput['action'] {
  if (outputModalities.includes('moderation')) return 'moderation';
  return outputModalities.includes('image') ? 'image' : 'chat';
}

/** Whose rules apply, and to a call from where; the address is canonical, or null when unknown. Of a call that is asked about, its facts. */
export interface ListScope {
  readonly subjects: readonly PolicySubject[];
  readonly clientIp: string | null;
  readonly facts?: PolicyFacts | undefined;
}

/** The input documents by which many mappings are judged, each for its action. */
export function listInputs({ subjects, clientIp, facts }: ListScope, mappings: readonly Mapping[]): PolicyInput[] {
  const inputs: PolicyInput[] = [];
  for (const [action, ofAction] of Map.groupBy(mappings, actionOf)) {
    for (let start = 0; start < ofAction.length; start += BATCH) {
      inputs.push(inputDocument(action, clientIp, subjects, ofAction.slice(start, start + BATCH), undefined, facts));
    }
  }
  return inputs;
}

/** The ids of the mappings that are permitted. @throws PolicyFailure */
export function permittedIds(
  pdp: Pdp,
  data: DataDocument,
  scope: ListScope,
  mappings: readonly Mapping[],
): Set<string> {
  const permitted = new Set<string>();
  for (const input of listInputs(scope, mappings)) for (const id of pdp.permitted(input, data)) permitted.add(id);
  return permitted;
}

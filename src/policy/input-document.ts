import { isFree, type Mapping } from '../domain/model.ts';
import type { PolicyCandidate, PolicyFacts, PolicyInput, PolicySubject } from '../generated/types.ts';
import { deepFreeze } from '../lib/collections.ts';
import type { DataDocument } from './data-document.ts';

/** Attributes of a candidate that rules may look at, and that it may lack. */
export type CandidateAttribute = Exclude<keyof PolicyCandidate, 'id' | 'names' | 'provider_names' | 'free'>;

/** The texts of inputs that are frozen throughout. */
const texts = new WeakMap<object, string>();

/** An input as JSON text; one that `inputDocument` made is written once. */
export const inputText = (input: object): string => texts.get(input) ?? JSON.stringify(input);

const known = new WeakMap<Mapping, PolicyCandidate>();

/** A mapping as the policy sees it. Mappings are immutable, so each is translated once. */
export function policyCandidate(mapping: Mapping): PolicyCandidate {
  const made = known.get(mapping);
  if (made !== undefined) return made;
  const candidate: PolicyCandidate = deepFreeze({
    id: mapping.id,
    names: [...mapping.names],
    provider_names: [...mapping.providerNames],
    free: isFree(mapping),
    ...knownAttributes(mapping),
  });
  known.set(mapping, candidate);
  return candidate;
}

/**
 * Question to the policy: `clientIp` is canonical, or null when unknown; subjects come outermost first; `tool` by which the
 * call came; `facts` of the request, where the policy takes them.
 */
type Question = readonly [
  action: PolicyInput['action'],
  clientIp: string | null,
  subjects: readonly PolicySubject[],
  mappings: readonly Mapping[],
  tool?: string,
  facts?: PolicyFacts,
];

/** The input document of one call, frozen. */
export function inputDocument(...[action, clientIp, subjects, mappings, tool, facts]: Question): PolicyInput {
  const input: PolicyInput = {
    action,
    client_ip: clientIp,
    subjects: subjects.map(({ scope, id }) => Object.freeze({ scope, id })),
    candidates: mappings.map(policyCandidate),
  };
  if (tool !== undefined) input.tool = tool;
  if (facts !== undefined) input.facts = deepFreeze(facts);
  for (const part of [input.subjects, input.candidates, input]) Object.freeze(part);
  texts.set(input, JSON.stringify(input));
  return input;
}

const latest = new WeakMap<DataDocument, PolicyInput>();

/** The same; the question last asked of a data document, when it is asked again, is the same object, so that its text is at hand. */
export function repeatedInput(data: DataDocument, ...question: Question): PolicyInput {
  const before = latest.get(data);
  if (before !== undefined && asks(before, question)) return before;
  const input = inputDocument(...question);
  latest.set(data, input);
  return input;
}

const asks = (input: PolicyInput, [action, clientIp, subjects, mappings, tool, facts]: Question): boolean =>
  input.action === action &&
  input.client_ip === clientIp &&
  input.tool === tool &&
  input.facts === facts &&
  input.subjects.length === subjects.length &&
  input.candidates.length === mappings.length &&
  subjects.every(({ scope, id }, at) => input.subjects[at]?.scope === scope && input.subjects[at]?.id === id) &&
  mappings.every((mapping, at) => input.candidates[at] === policyCandidate(mapping));

function knownAttributes({ prices, tags }: Mapping): Pick<PolicyCandidate, CandidateAttribute> {
  const attributes: { readonly [Attribute in CandidateAttribute]: PolicyCandidate[Attribute] | undefined } = {
    input_price: comparablePrice(prices.prompt),
    output_price: comparablePrice(prices.completion),
    tags: tags.length === 0 ? undefined : [...tags],
  };
  return Object.fromEntries(
    Object.entries(attributes).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

/** Every cap is at most 9e12 pico-dollars, so whatever a JSON number cannot hold exactly compares the same when cut off. */
function comparablePrice(pico: bigint | undefined): number | undefined {
  if (pico === undefined) return undefined;
  return pico > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(pico);
}

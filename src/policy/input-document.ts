import { isFree, type Mapping } from '../domain/model.ts';
import type { PolicyCandidate, PolicyInput, PolicySubject } from '../generated/types.ts';

/** What rules may look at in a candidate, and a candidate may lack. */
export type CandidateAttribute = Exclude<keyof PolicyCandidate, 'id' | 'names' | 'provider_names' | 'free'>;

const candidates = new WeakMap<Mapping, PolicyCandidate>();

/** A mapping as the policy sees it. Mappings are immutable, so each is translated once. */
export function policyCandidate(mapping: Mapping): PolicyCandidate {
  const known = candidates.get(mapping);
  if (known !== undefined) return known;
  const candidate: PolicyCandidate = {
    id: mapping.id,
    names: [...mapping.names],
    provider_names: [...mapping.providerNames],
    free: isFree(mapping),
    ...knownAttributes(mapping),
  };
  candidates.set(mapping, candidate);
  return candidate;
}

/** The input document of one call. `clientIp` is canonical, or null when unknown; subjects come outermost first; `tool` by which it came. */
export function inputDocument(
  action: PolicyInput['action'],
  clientIp: string | null,
  subjects: readonly PolicySubject[],
  mappings: readonly Mapping[],
  tool?: string,
): PolicyInput {
  const input: PolicyInput = {
    action,
    client_ip: clientIp,
    subjects: [...subjects],
    candidates: mappings.map(policyCandidate),
  };
  if (tool !== undefined) input.tool = tool;
  return input;
}

function knownAttributes({ prices }: Mapping): Pick<PolicyCandidate, CandidateAttribute> {
  const attributes: { readonly [Attribute in CandidateAttribute]: PolicyCandidate[Attribute] | undefined } = {
    input_price: comparablePrice(prices.prompt),
    output_price: comparablePrice(prices.completion),
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

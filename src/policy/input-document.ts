import { isFree, type Mapping } from '../domain/model.ts';
import type { PolicyCandidate, PolicyInput, PolicySubject } from '../generated/types.ts';

const candidates = new WeakMap<Mapping, PolicyCandidate>();

/** A mapping as the policy sees it. Mappings are immutable, so each is translated once. */
export function policyCandidate(mapping: Mapping): PolicyCandidate {
  const known = candidates.get(mapping);
  if (known !== undefined) return known;
  const { prompt, completion } = mapping.prices;
  const candidate: PolicyCandidate = {
    id: mapping.id,
    names: [...mapping.names],
    provider_names: [...mapping.providerNames],
    free: isFree(mapping),
    ...(prompt === undefined ? {} : { input_price: comparablePrice(prompt) }),
    ...(completion === undefined ? {} : { output_price: comparablePrice(completion) }),
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

/** Every cap is at most 9e12 pico-dollars, so whatever a JSON number cannot hold exactly compares the same when cut off. */
const comparablePrice = (pico: bigint): number =>
  pico > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(pico);

/**
 * What test/fixtures/policy/denials means, written once more: the violations that it adds to those of the rules, and the calls
 * that it makes fail.
 */
import type { PolicyDecision, PolicyViolation } from '../../src/generated/types.ts';
import { type OracleRequest, oracleDecision } from './oracle.ts';

/** The oracle's decision with the package `custom` in force; null: the call cannot be judged. */
export function oracleWithCustom(request: OracleRequest): PolicyDecision | null {
  const { action, clientIp } = request;
  // "A `deny` that is no set fails the call."
  if (action === 'image' && clientIp === null) return null;
  return oracleDecision(request, denials(request));
}

function denials({ action, subjects, candidates }: OracleRequest): PolicyViolation[] {
  const behind = (name: string) => candidates.filter(({ provider_names }) => provider_names.includes(name));
  return [
    ...(action === 'image' ? [denial('images', 'no images')] : []),
    ...behind('azure').map(({ id }) => denial('azure', 'no azure', id)),
    // "A denial that lacks an id or a message still denies."
    ...behind('custom:acme').map(({ id }) => denial('without id', 'without message', id)),
    ...(action === 'moderation' && subjects.length === 1 ? [denial('without id', 'without message')] : []),
  ];
}

const denial = (id: string, message: string, candidate?: string): PolicyViolation => ({
  scope: 'custom',
  kind: 'custom',
  effect: 'deny',
  ...(candidate !== undefined && { candidate }),
  ruleIds: [id],
  values: [message],
});

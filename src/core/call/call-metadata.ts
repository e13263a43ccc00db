import type { Mapping } from '../../domain/model.ts';
import type { CallMetadata, RoutingAttempt } from '../../generated/types.ts';
import type { Call } from './call.ts';

/** The answer's `metadata`, exactly as the specification and src/core/README.md, "metadata.routing", have it. */
export const callMetadata = (
  { id, facts }: Pick<Call, 'id' | 'facts'>,
  mapping: Mapping,
  upstreamModel: string | undefined,
  routing: readonly RoutingAttempt[],
  cached = false,
): CallMetadata => ({
  request_id: facts.context.requestId,
  requested_model: facts.requestedModel,
  ...(facts.requestedProvider === undefined ? {} : { requested_provider: facts.requestedProvider }),
  used_model: mapping.modelId,
  used_provider: mapping.providerId,
  used_region: mapping.region ?? 'global',
  underlying_used_model: upstreamModel ?? mapping.externalId,
  log_id: id,
  organization_id: facts.principal.organizationId,
  project_id: facts.principal.projectId,
  discount: 0,
  cached,
  routing: [...routing],
});

import { decideCall } from '../../scripts/bench/analysis-decisions.ts';
import { idLike } from '../../src/domain/id.ts';
import { createPdp } from '../../src/policy/pdp.ts';
import type { Database } from '../../src/store/db/database.ts';
import type { DecisionRecord } from '../../src/store/ledger/references.ts';
import type { World } from '../../src/workbench/world/world.ts';
import { insertCall } from './stored-calls.ts';

/** A call of a key of a world. */
export interface LoggedCall {
  readonly keyId: string;
  readonly model: string;
  /** Canonical; default: unknown. */
  readonly address?: string | null;
  /** Epoch ms or RFC 3339. */
  readonly time: number | string;
  /** The mappings that were tried, `provider/model`, the one that served last; default: none. */
  readonly targets?: readonly string[];
}

const pdp = createPdp();

/**
 * Stores a call as the policy decides it by the rules of a world.
 * @param changes of the record, where it is not what the policy would say. @returns the decision's id
 */
export function logDecision(
  db: Database,
  world: World,
  { keyId, model, address = null, time, targets = [] }: LoggedCall,
  changes: Partial<DecisionRecord> = {},
): string {
  const key = world.keys.get(keyId);
  if (key === undefined) throw new Error(`the world has no key ${keyId}`);
  const decision = { ...decideCall(pdp, world, key, model, address), ...changes };
  const { organizationId, memberId, projectId } = key;
  const isDenied = decision.outcome === 'deny';
  const attempts = targets.map((target, place) => ({ ...namesOf(target), succeeded: place === targets.length - 1 }));
  const served = namesOf(targets.at(-1));
  const { id } = insertCall(
    db,
    time,
    {
      ...{ organizationId, projectId: projectId ?? '', keyId, memberId },
      ...{ requestedModel: model, clientAddress: address },
      ...(targets.length === 0 ? {} : { providerId: served.provider, modelId: served.model }),
      ...(targets.length === 0 ? {} : { attemptsJson: JSON.stringify(attempts) }),
      ...(isDenied ? { state: 'denied', statusCode: 403 } : {}),
    },
    decision,
  );
  return idLike(id, 'dec');
}

function namesOf(target = ''): { readonly provider: string; readonly model: string } {
  const [provider = '', ...model] = target.split('/');
  return { provider, model: model.join('/') };
}

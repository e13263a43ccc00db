import type { Catalog } from '../catalog/catalog.ts';
import type { Mapping } from '../domain/model.ts';
import { RecentMap } from '../domain/recent-map.ts';
import type { Pdp } from '../policy/pdp.ts';
import { policyRevision } from './authorize.ts';
import type { Documents } from './documents.ts';
import { actionOf, permittedIds } from './permitted-ids.ts';
import type { Principal } from './principal.ts';
import type { FindReach, Reach } from './reach.ts';
import { isPriced } from './worst-case.ts';

export interface ReachableDeps {
  readonly catalog: Catalog;
  readonly findReach: FindReach;
  readonly documents: Documents;
  /** The policy in force. */
  readonly pdp: () => Pdp;
}

/** Whose list it is, and the address from which he calls: canonical, or null when unknown. */
export interface ListCaller {
  readonly principal: Principal;
  readonly clientIp: string | null;
}

/** What a key could call now. */
export interface Reachable {
  readonly reach: Reach;
  /** Every mapping with a credential, permitted or not, deactivated ones included; those of custom models last. */
  readonly mappings: readonly Mapping[];
  /** Permitted by the policy, and priced where the key has a limit. */
  usable(mapping: Mapping): boolean;
  /** By which policy and rules it was judged. */
  readonly policyRevision: string;
}

/** @throws PolicyFailure when the policy cannot be evaluated */
export type FindReachable = (caller: ListCaller) => Promise<Reachable>;

/** Most answers of the policy that are remembered. */
const MAX_REMEMBERED = 256;

/** For lists and for choosing only: what it says opens nothing (decisions.md, section 6, "lists, `auto`"). */
export function createFindReachable({ catalog, findReach, documents, pdp }: ReachableDeps): FindReachable {
  const remembered = new RecentMap<string, ReadonlySet<string>>(MAX_REMEMBERED);

  return async ({ principal, clientIp }) => {
    const reach = await findReach(principal);
    const data = await documents(principal);
    const engine = pdp();
    const mappings = [...catalog.mappings(), ...reach.custom].filter((mapping) => reach.has(mapping));
    const key = JSON.stringify([engine.bundleDigest, data.digest, catalog.digest, reach.id, clientIp]);
    let permitted = remembered.get(key);
    if (permitted === undefined) {
      permitted = permittedIds(engine, data, { subjects: principal.subjects, clientIp }, mappings);
      remembered.set(key, permitted);
    }
    const ids = permitted;
    return {
      reach,
      mappings,
      usable: (mapping) => ids.has(mapping.id) && (!principal.capped || isPriced(mapping, actionOf(mapping))),
      policyRevision: policyRevision(engine.bundleDigest, principal.ruleRevision),
    };
  };
}

import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Catalog } from '../../catalog/catalog.ts';
import type { Mapping } from '../../domain/model.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import type { DataDocument } from '../../policy/data-document.ts';
import type { Pdp } from '../../policy/pdp.ts';
import { policyRevision } from '../access/authorize.ts';
import type { Documents } from '../access/documents.ts';
import { actionOf, permittedIds } from '../access/permitted-ids.ts';
import type { Principal } from '../access/principal.ts';
import { isPriced } from '../price/worst-case.ts';
import type { FindReach, Reach } from './reach.ts';

export interface ReachableDeps {
  readonly catalog: Catalog;
  readonly findReach: FindReach;
  readonly documents: Documents;
  /** The policy in force. */
  readonly pdp: () => Pdp;
}

/** Whose list it is, and the address of the call: canonical, or null when unknown. */
export interface ListCaller {
  readonly principal: Principal;
  readonly clientIp: string | null;
}

/** What a key could call now. */
interface Reachable {
  /** The same for the same answer: for those who remember what they made of it. */
  readonly id: string;
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

/** What the policy said of the mappings that have a credential. */
interface Judged {
  readonly mappings: readonly Mapping[];
  readonly permitted: ReadonlySet<string>;
  readonly digest: string;
}

/** Without a rule on addresses every address gets the same answer; a forged one must not buy an evaluation. */
export const judgesAddresses = ({ text }: DataDocument): boolean => text.includes('_ip_cidrs"');

/** For lists and for choosing only: what it says opens nothing (src/core/README.md, "lists"). */
export function createFindReachable({ catalog, findReach, documents, pdp }: ReachableDeps): FindReachable {
  const remembered = new LRUCache<string, Judged>({ max: MAX_REMEMBERED });

  return async ({ principal, clientIp }) => {
    const reach = await findReach(principal);
    const data = await documents(principal);
    const engine = pdp();
    const judge = (): Judged => {
      const known = catalog.mappings().map(reach.seen);
      const mappings = [...known, ...reach.custom].filter((mapping) => reach.has(mapping));
      const permitted = permittedIds(engine, data, { subjects: principal.subjects, clientIp }, mappings);
      return { mappings, permitted, digest: hash('sha256', [...permitted].join('\n')) };
    };
    const address = judgesAddresses(data) ? clientIp : 'any';
    const key = JSON.stringify([engine.bundleDigest, data.digest, catalog.digest, reach.id, address]);
    const { mappings, permitted, digest } = getOrMake<string, Judged>(remembered, key, judge);
    return {
      id: `${reach.id} ${digest} ${principal.capped}`,
      reach,
      mappings,
      usable: (mapping) => permitted.has(mapping.id) && (!principal.capped || isPriced(mapping, actionOf(mapping))),
      policyRevision: policyRevision(engine.bundleDigest, principal.ruleRevision),
    };
  };
}

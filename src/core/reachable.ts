import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Catalog } from '../catalog/catalog.ts';
import { permissionDenied } from '../domain/errors.ts';
import type { Mapping } from '../domain/model.ts';
import type { PolicyFacts, PolicyInput, PolicySubject } from '../generated/types.ts';
import { getOrMake } from '../lib/collections.ts';
import type { DataDocument } from '../policy/data-document.ts';
import { denialReason } from '../policy/denial.ts';
import { inputDocument } from '../policy/input-document.ts';
import type { Pdp } from '../policy/pdp.ts';
import type { Store } from '../store/store.ts';
import { type Documents, type Principal, policyRevision, tellDenial } from './authorize.ts';
import { actionOf, isPriced } from './operations.ts';
import type { FindReach, Reach } from './reach.ts';

interface ReachableDeps {
  readonly catalog: Catalog;
  readonly findReach: FindReach;
  readonly documents: Documents;
  /** The policy in force. */
  readonly pdp: () => Pdp;
}

/** The caller of a list, and the address of the call: canonical, or null when unknown. */
export interface ListCaller {
  readonly principal: Principal;
  readonly clientIp: string | null;
}

/** Models that a key could call now. */
interface Reachable {
  /** Equal for equal answers: for callers that keep a result made from one. */
  readonly id: string;
  readonly reach: Reach;
  /** Every mapping with a credential, permitted or not, deactivated ones included; those of custom models last. */
  readonly mappings: readonly Mapping[];
  /** Permitted by the policy, and priced where the key has a limit. */
  usable(mapping: Mapping): boolean;
  /** The policy and rules by which it was judged. */
  readonly policyRevision: string;
}

/** @throws PolicyFailure when the policy cannot be evaluated */
export type FindReachable = (caller: ListCaller) => Promise<Reachable>;

/** Most answers of the policy that are remembered. */
const MAX_REMEMBERED = 256;

/** The policy's answer for the mappings that have a credential. */
interface Judged {
  readonly mappings: readonly Mapping[];
  readonly permitted: ReadonlySet<string>;
  readonly digest: string;
}

/** Without a rule on addresses every address gets the same answer; a forged one must not buy an evaluation. */
const judgesAddresses = ({ text }: DataDocument): boolean => text.includes('_ip_cidrs"');

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

/** Candidates in one evaluation: its cost grows with their square (src/core/README.md, "lists"). */
const BATCH = 64;

/**
 * Subjects whose rules apply, and the address of the call: canonical, or null when unknown. For a question about one call, also
 * its facts.
 */
export interface ListScope {
  readonly subjects: readonly PolicySubject[];
  readonly clientIp: string | null;
  readonly facts?: PolicyFacts | undefined;
}

/** Input documents for many mappings: for each action, one for every `BATCH` mappings. */
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

/** IP rules look at no candidate; the policy wants one. */
const ANY = { id: 'any', names: ['any'], provider_names: ['any'], free: true };

/**
 * Judges by the IP rules alone, for a door that shows something before a model is named. The calls behind it are judged as all
 * calls are. @throws ApiError 403, PolicyFailure
 */
export type CheckAddress = (caller: ListCaller) => Promise<void>;

export function createCheckAddress({
  store,
  documents,
  pdp,
}: {
  readonly store: Pick<Store, 'read'>;
  readonly documents: Documents;
  readonly pdp: () => Pdp;
}): CheckAddress {
  return async ({ principal, clientIp }) => {
    const data = await documents(principal);
    if (!judgesAddresses(data)) return;
    const input = { ...inputDocument('moderation', clientIp, principal.subjects, []), candidates: [ANY] };
    const { violations } = pdp().decide(input, data);
    const byAddress = violations.filter(({ kind }) => kind === 'ip_cidrs');
    if (byAddress.length === 0) return;
    const reason = denialReason(input, { permitted: [], violations: byAddress });
    throw permissionDenied(await tellDenial(store, principal.organizationId, reason));
  };
}

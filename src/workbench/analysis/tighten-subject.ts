import type { DraftRule } from '../../generated/types.ts';
import type { CallFilter } from '../../store/ledger/call-log.ts';
import type { AlikeCalls } from '../replay/gather-decided.ts';
import type { World, WorldRule } from '../world/world.ts';

/** Whose rules are tightened. */
export interface TightenSubject {
  readonly id: string;
  readonly organizationId: string;
  /** For people: `the key CI`. */
  readonly name: string;
  readonly rules: readonly WorldRule[];
  /** How a draft names the owner of a rule. */
  readonly owner: Pick<DraftRule, 'key' | 'member' | 'group'>;
  /** Calls that may be its own, as the log tells them. */
  readonly filter: Pick<CallFilter, 'keyId' | 'memberId'>;
  /** Whether its rules bind the caller: for a group, who is in it now. */
  isCaller(call: Pick<AlikeCalls, 'keyId' | 'memberId'>): boolean;
}

/**
 * The key, member or group that a person means.
 * @param reference an id, the description of a key, an e-mail or the name of a group. @throws Error for none or several
 */
export function findTightenSubject(world: World, reference: string): TightenSubject {
  const meant = [...keysMeant(world, reference), ...membersMeant(world, reference), ...groupsMeant(world, reference)];
  const [subject] = meant;
  if (subject === undefined) throw new Error(`There is no key, member or group "${reference}".`);
  if (meant.length > 1) throw new Error(`"${reference}" matches several: ${meant.map(({ id }) => id).join(', ')}.`);
  return subject;
}

function keysMeant({ keys }: World, reference: string): TightenSubject[] {
  const named = [...keys.values()].filter(({ description }) => description === reference);
  const meant = keys.get(reference);
  return (meant === undefined ? named : [meant]).map(({ id, organizationId, description, rules }) => ({
    ...{ id, organizationId, rules },
    name: `the key ${description}`,
    owner: { key: reference },
    filter: { keyId: id },
    isCaller: ({ keyId }) => keyId === id,
  }));
}

const membersMeant = ({ members }: World, reference: string): TightenSubject[] =>
  [...members.values()]
    .filter(({ id, email }) => id === reference || email === reference.toLowerCase())
    .map(({ id, organizationId, email, rules }) => ({
      ...{ id, organizationId, rules },
      name: `the member ${email}`,
      owner: { member: email },
      filter: { memberId: id },
      isCaller: ({ memberId }) => memberId === id,
    }));

const groupsMeant = ({ groups }: World, reference: string): TightenSubject[] =>
  [...groups.values()]
    .filter(({ id, name }) => id === reference || name === reference)
    .map(({ id, organizationId, name, holderIds, rules }) => ({
      ...{ id, organizationId, rules },
      name: `the group ${name}`,
      owner: { group: name },
      filter: {},
      isCaller: ({ keyId, memberId }) => holderIds.has(keyId) || holderIds.has(memberId),
    }));

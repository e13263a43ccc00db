import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import { ApiError, invalidRequest, notFound } from '../../domain/errors.ts';
import { newId } from '../../domain/id.ts';
import { formatTime } from '../../domain/time.ts';
import type { PasskeyAssertion, PasskeyRegistration } from '../../generated/types.ts';
import { optional } from '../../lib/collections.ts';
import type { Database } from '../../store/db/database.ts';
import * as store from '../../store/sign-in/sign-in-records.ts';
import { findMember, type MemberRecord } from '../../store/tenants/member-records.ts';
import { type Person, recordChange } from '../audit/audit-trail.ts';

/** Most passkeys of one member: each device has one or two. */
const MAX_PASSKEYS = 20;
const NAME = 'Portcullis';

/** The place where passkeys are used: the page's origin, and its host name, to which they belong. */
export interface PasskeyPlace {
  readonly origin: string;
  readonly rpId: string;
}

/** Options for the browser, and the challenge in them, which is compared once. */
interface Ceremony {
  readonly options: object;
  readonly challenge: string;
}

/** Loaded when it is first needed: it brings the formats of all certificates along. */
const webauthn = () => import('@simplewebauthn/server');

/** Options to create one more passkey for the member; it asks for a check of the person, and can be found without an e-mail. */
export async function passkeyCreation(
  { id, email, name }: MemberRecord,
  { rpId }: PasskeyPlace,
  present: readonly store.PasskeyRecord[],
): Promise<Ceremony> {
  const { generateRegistrationOptions } = await webauthn();
  const options = await generateRegistrationOptions({
    rpName: NAME,
    rpID: rpId,
    userID: new Uint8Array(Buffer.from(id)),
    userName: email,
    userDisplayName: name ?? email,
    attestationType: 'none',
    excludeCredentials: credentialsAt(rpId, present),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
  });
  return { options, challenge: options.challenge };
}

const credentialsAt = (rpId: string, passkeys: readonly store.PasskeyRecord[]) =>
  passkeys
    .filter((passkey) => passkey.rpId === rpId)
    .map(({ credentialId, transports }) => ({ id: credentialId, transports: [...transports] }));

/** Options to sign in with any passkey of this place. */
export async function passkeyRequest({ rpId }: PasskeyPlace): Promise<Ceremony> {
  const { generateAuthenticationOptions } = await webauthn();
  const options = await generateAuthenticationOptions({ rpID: rpId, userVerification: 'required' });
  return { options, challenge: options.challenge };
}

/** A new credential, verified, to be stored by `addPasskey`. */
export type VerifiedPasskey = Pick<
  store.PasskeyRecord,
  'rpId' | 'credentialId' | 'publicKey' | 'counter' | 'transports' | 'label'
>;

const UNFIT = 'The passkey could not be verified. Try again.';

/** @throws ApiError 400 */
export async function verifyPasskeyCreation(
  { label, credential }: PasskeyRegistration,
  { origin, rpId }: PasskeyPlace,
  challenge: string,
): Promise<VerifiedPasskey> {
  const { verifyRegistrationResponse } = await webauthn();
  const response: RegistrationResponseJSON = credential;
  const verified = await verifyRegistrationResponse({
    response,
    expectedChallenge: challenge,
    expectedOrigin: origin,
    expectedRPID: rpId,
    requireUserVerification: true,
  }).catch(() => undefined);
  if (verified?.verified !== true) throw invalidRequest(UNFIT);
  const { id, publicKey, counter, transports = [] } = verified.registrationInfo.credential;
  return {
    rpId,
    credentialId: id,
    publicKey: Buffer.from(publicKey).toString('base64url'),
    counter,
    transports,
    label: label.trim() === '' ? 'Passkey' : label.trim(),
  };
}

/** The counter that the authenticator shows with what it signed. @throws ApiError 401 when the passkey did not sign this, here and now */
export async function verifyPasskeyUse(
  { credential }: PasskeyAssertion,
  { origin, rpId }: PasskeyPlace,
  challenge: string,
  passkey: store.PasskeyRecord | undefined,
): Promise<number> {
  const { verifyAuthenticationResponse } = await webauthn();
  const response: AuthenticationResponseJSON = credential;
  const verified =
    passkey === undefined
      ? undefined
      : await verifyAuthenticationResponse({
          response,
          expectedChallenge: challenge,
          expectedOrigin: origin,
          expectedRPID: rpId,
          requireUserVerification: true,
          credential: {
            id: passkey.credentialId,
            publicKey: new Uint8Array(Buffer.from(passkey.publicKey, 'base64url')),
            counter: passkey.counter,
          },
        }).catch(() => undefined);
  if (verified?.verified !== true) throw refusedPasskey();
  return verified.authenticationInfo.newCounter;
}

/** Also of one whose member has left. */
export const refusedPasskey = (): ApiError =>
  new ApiError(401, 'passkey_refused', 'This passkey is not known here, or could not be verified.');

const viewPasskey = (passkey: store.PasskeyRecord) => ({
  id: passkey.id,
  memberId: passkey.memberId,
  label: passkey.label,
  rpId: passkey.rpId,
  createdAt: formatTime(passkey.createdAt),
  lastUsedAt: optional(passkey.lastUsedAt, formatTime),
});

export const listPasskeys = (db: Database, { organizationId, id }: MemberRecord): store.PasskeyRecord[] =>
  store.passkeysOf(db, organizationId, id);

/** Stores a passkey of the person; 400 when they have as many as there can be, or someone has it already. @param now epoch ms */
export function addPasskey(db: Database, person: Person, passkey: VerifiedPasskey, now: number): store.PasskeyRecord {
  const { organizationId, memberId } = person;
  return db.transaction(() => {
    if (store.passkeysOf(db, organizationId, memberId).length >= MAX_PASSKEYS) {
      throw invalidRequest(`You have ${MAX_PASSKEYS} passkeys: remove one first.`);
    }
    if (store.findPasskeyByCredential(db, passkey.credentialId) !== undefined) throw invalidRequest(UNFIT);
    const added = store.insertPasskey(db, { ...passkey, id: newId('pass'), organizationId, memberId }, now);
    recordChange(db, person, 'passkey', 'create', { before: null, after: viewPasskey(added) }, now);
    return added;
  });
}

/** Removes a passkey of the person; 404 when they have no such passkey. @param now epoch ms */
export function removePasskey(db: Database, person: Person, id: string, now: number): void {
  const { organizationId, memberId } = person;
  db.transaction(() => {
    const passkey = store.passkeysOf(db, organizationId, memberId).find((each) => each.id === id);
    if (passkey === undefined) throw notFound('There is no such passkey.');
    store.deletePasskey(db, organizationId, id);
    recordChange(db, person, 'passkey', 'delete', { before: viewPasskey(passkey), after: null }, now);
  });
}

/**
 * Records a verified use of a passkey and returns its member. @throws ApiError 401 if the member has left, or the counter has changed
 * since it was read
 */
export function notePasskeyUse(db: Database, passkey: store.PasskeyRecord, counter: number, now: number): MemberRecord {
  return db.transaction(() => {
    const member = findMember(db, passkey.organizationId, passkey.memberId);
    if (member === undefined || !store.touchPasskey(db, passkey, counter, now)) throw refusedPasskey();
    return member;
  });
}

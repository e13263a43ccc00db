import { hashSecret, type Pepper } from '../../domain/id.ts';
import { DUMMY_HASH, fitsPassword } from '../../domain/identity.ts';
import type { Clock } from '../../domain/time.ts';
import type { Turns } from '../../domain/turns.ts';
import type { Database } from '../../store/db/database.ts';
import * as store from '../../store/sign-in/sign-in-records.ts';
import { deleteOpenSignInLinks } from '../../store/sign-in/sign-in-records.ts';
import type { Store } from '../../store/store.ts';
import {
  findMember,
  findPasswordHash,
  findPasswordHolders,
  getMember,
  type MemberRecord,
  type PasswordHolder,
  updateMember,
} from '../../store/tenants/member-records.ts';
import { type Job, type Person, recordChange } from '../audit/audit-trail.ts';
import { viewMember } from '../tenants/members.ts';
import { endOtherSessions } from './sessions.ts';

/** So many failures for one e-mail within the window lock it for as long. */
const MAX_FAILURES = 10;
export const WINDOW_MS = 15 * 60_000;

/** E-mails that are counted at once; beyond, the one whose window began first is forgotten. */
const MAX_COUNTED = 10_000;
const SWEPT = 20;

/**
 * An e-mail belongs to a member of each of several organizations. So many of them, the oldest first, can sign in with it and a
 * password, and so many hashes are computed for every attempt: the time does not tell how many there are. Others sign in by
 * passkey or by link.
 */
const MAX_HOLDERS = 3;

interface SignInDeps {
  readonly store: Pick<Store, 'read' | 'write'>;
  readonly clock: Clock;
  /** Accepted peppers, the current one first. */
  readonly peppers: readonly [Pepper, ...Pepper[]];
  /** In which passwords are hashed. */
  readonly turns: Turns;
}

interface SignInAttempt {
  readonly email: string;
  readonly password: string;
  /** On whose behalf attempts take turns. */
  readonly network: string;
}

/** Those with this e-mail and password, one in each organization, or none; `locked`: there were too many failures. */
type SignInOutcome = readonly PasswordHolder[] | 'locked';

/**
 * Tries an e-mail with a password; the same is done, and takes as long, whether a member has it or not. An attempt counts as
 * failed before it is judged, so that many at once are no more than ten. One that succeeds takes back itself alone: other
 * failures stay, or the holder of the same e-mail in another organization could clear them while guessing. @throws ApiError 503
 * when too many wait
 */
export const signInByPassword = (deps: SignInDeps, attempt: SignInAttempt): Promise<SignInOutcome> =>
  judged(deps, attempt, (db) => findPasswordHolders(db, attempt.email, MAX_HOLDERS));

/** Whether a member's password is this; every failure counts as one to sign in does. @throws ApiError 503 when too many wait */
export async function confirmPassword(
  deps: SignInDeps,
  member: MemberRecord,
  attempt: Omit<SignInAttempt, 'email'>,
): Promise<boolean | 'locked'> {
  const outcome = await judged(deps, { ...attempt, email: member.email }, (db) => {
    const passwordHash = findPasswordHash(db, member.organizationId, member.id);
    return passwordHash ? [{ member, passwordHash }] : [];
  });
  return outcome === 'locked' ? outcome : outcome.length > 0;
}

/**
 * The member whose password was found to fit, if it still is their password: another one may have been set while it was compared, which
 * ends what the old one gave. Undefined: it is not. To be called in the transaction that signs them in.
 */
export function readHolder(db: Database, { member, passwordHash }: PasswordHolder): MemberRecord | undefined {
  const { organizationId, id } = member;
  return findPasswordHash(db, organizationId, id) === passwordHash ? findMember(db, organizationId, id) : undefined;
}

function judged(
  { store: database, clock, peppers, turns }: SignInDeps,
  { email, password, network }: SignInAttempt,
  findHolders: (db: Database) => readonly PasswordHolder[],
): Promise<SignInOutcome> {
  return turns.take(network, async () => {
    const emailHash = hashSecret(`sign-in ${email.toLowerCase()}`, peppers[0]);
    const attempt = await database.write((db) => beginAttempt(db, emailHash, clock.now()));
    if (attempt === 'locked') return 'locked';
    const holders = await database.read(findHolders);
    const fitting = await fittingHolders(password, holders);
    if (fitting.length > 0) {
      await database.write((db) => takeBack(db, emailHash, attempt));
    } else if (attempt === 'last') {
      await database.write((db) => recordLocks(db, holders, clock.now()));
    }
    return fitting;
  });
}

/** Those with this password. It takes the same number of hashes for everyone. */
async function fittingHolders(password: string, holders: readonly PasswordHolder[]): Promise<PasswordHolder[]> {
  const fitting: PasswordHolder[] = [];
  for (let index = 0; index < MAX_HOLDERS; index++) {
    const holder = holders[index];
    const fits = await fitsPassword(password, holder?.passwordHash ?? DUMMY_HASH);
    if (fits && holder !== undefined) fitting.push(holder);
  }
  return fitting;
}

/** `last`: if it fails, the e-mail is locked. */
type Attempt = 'counted' | 'last';

function beginAttempt(db: Database, emailHash: string, now: number): Attempt | 'locked' {
  const before = store.findSignInFailures(db, emailHash);
  if (before?.lockedUntil != null && before.lockedUntil > now) return 'locked';
  store.deleteSignInFailures(db, now - 2 * WINDOW_MS, SWEPT);
  if (before === undefined && store.countSignInFailures(db) >= MAX_COUNTED) store.deleteSignInFailures(db, now, 1);
  const goesOn = before !== undefined && before.lockedUntil === null && before.windowStartedAt + WINDOW_MS > now;
  const failures = goesOn ? before.failures + 1 : 1;
  const isLast = failures >= MAX_FAILURES;
  store.putSignInFailures(db, {
    emailHash,
    failures,
    windowStartedAt: goesOn ? before.windowStartedAt : now,
    lockedUntil: isLast ? now + WINDOW_MS : null,
  });
  return isLast ? 'last' : 'counted';
}

function takeBack(db: Database, emailHash: string, attempt: Attempt): void {
  const state = store.findSignInFailures(db, emailHash);
  if (state === undefined) return;
  const lockedUntil = attempt === 'last' ? null : state.lockedUntil;
  store.putSignInFailures(db, { ...state, failures: Math.max(0, state.failures - 1), lockedUntil });
}

/** The audit logs of those who have the e-mail tell that it is locked. */
function recordLocks(db: Database, holders: readonly PasswordHolder[], now: number): void {
  for (const { member } of holders) {
    const job: Job = { kind: 'job', name: 'sign_in', organizationId: member.organizationId };
    const view = viewMember(member);
    recordChange(db, job, 'member', 'lock', { before: view, after: view }, now);
  }
}

/**
 * Gives the person a password, by its hash, and ends all their sessions and unused links: those who knew the old one are out. 404 when
 * they have left.
 * @param now epoch ms
 */
export function setPassword(db: Database, person: Person, passwordHash: string, now: number): MemberRecord {
  const { organizationId, memberId } = person;
  return db.transaction(() => {
    const before = viewMember(getMember(db, organizationId, memberId));
    const member = updateMember(db, organizationId, memberId, { passwordHash }, now);
    endOtherSessions(db, person, undefined, now);
    deleteOpenSignInLinks(db, organizationId, memberId);
    recordChange(db, person, 'member', 'set_password', { before, after: viewMember(member) }, now);
    return member;
  });
}

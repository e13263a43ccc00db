import { isIP } from 'node:net';
import type { Person } from '../../admin/audit/audit-trail.ts';
import type { PasskeyPlace } from '../../admin/sign-in/passkeys.ts';
import { endSession, startSession } from '../../admin/sign-in/sessions.ts';
import { hashPassword, PASSWORD_LENGTH, passwordFault } from '../../domain/identity.ts';
import type { Turns } from '../../domain/turns.ts';
import type { Database } from '../../store/db/database.ts';
import type { SignInMethod } from '../../store/db/tables.ts';
import type { MemberRecord } from '../../store/tenants/member-records.ts';
import type { PagesContext } from '../app-context.ts';
import { type Form, field } from '../pages/form.ts';
import { html, type SafeHtml } from '../pages/html.ts';
import type { Pages } from '../pages/pages.ts';
import type { RequestContext } from '../state.ts';

/** The parts that the sign-in pages of one listener use. */
export interface SignInPages {
  readonly app: PagesContext;
  /** The listener also has the page of members' applications. */
  readonly hasApplications: boolean;
  readonly pages: Pages;
  /** In which passwords are hashed. */
  readonly turns: Turns;
}

export const personOf = ({ organizationId, id }: MemberRecord): Person => ({
  kind: 'person',
  organizationId,
  memberId: id,
});

/**
 * Signs the browser in, with a session of its own id: the one that it had ends.
 * @param prepare what else is done in the same transaction, before; it says who is signed in
 */
export async function signIn(
  ctx: RequestContext,
  { pages, app: { store, peppers } }: SignInPages,
  method: SignInMethod,
  prepare: (db: Database, now: number) => MemberRecord,
): Promise<void> {
  const before = await pages.currentSession(ctx);
  const secret = await store.write((db, now) => {
    const member = prepare(db, now);
    if (before !== undefined) endSession(db, personOf(before.member), before.id, now);
    return startSession(db, member, method, { now, pepper: peppers[0] }).secret;
  });
  pages.setSession(ctx, secret);
}

/** @throws ApiError 503 when too many wait */
export const hashInTurn = (ctx: RequestContext, { turns }: SignInPages, password: string): Promise<string> =>
  turns.take(ctx.state.network, () => hashPassword(password));

/**
 * Place of a passkey made on this page; undefined: browsers have none for addresses without a name, nor without TLS except for
 * `localhost`.
 */
export function passkeyPlace(ctx: RequestContext, { pages }: SignInPages): PasskeyPlace | undefined {
  const { origin, protocol, hostname } = new URL(pages.origin.of(ctx.req));
  if (isIP(hostname) !== 0 || hostname.startsWith('[')) return undefined;
  return protocol === 'https:' || hostname === 'localhost' ? { origin, rpId: hostname } : undefined;
}

/** Faults of a form, by its fields. */
export type Faults = Readonly<Record<string, string | undefined>>;

export const hasFaults = (faults: Faults): boolean => Object.values(faults).some((fault) => fault !== undefined);

/** The two fields of a password that is chosen. Length is not limited by the browser: it would cut what is pasted. */
export const newPasswordFields = (faults: Faults, required = true): SafeHtml => html`${field({
  name: 'password',
  label: 'New password',
  type: 'password',
  autocomplete: 'new-password',
  hint: `${PASSWORD_LENGTH.min} to ${PASSWORD_LENGTH.max} characters. A sentence is fine.`,
  fault: faults.password,
  required,
})}
${field({
  name: 'again',
  label: 'Confirm new password',
  type: 'password',
  autocomplete: 'new-password',
  fault: faults.again,
  required,
})}`;

/** Faults of the two password fields. */
export function newPasswordFaults(form: Form, email: string): Faults {
  const password = passwordFault(form.text('password'), email);
  if (password !== undefined) return { password };
  return { again: form.text('again') === form.text('password') ? undefined : 'The passwords do not match.' };
}

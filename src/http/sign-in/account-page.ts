import { listPasskeys } from '../../admin/sign-in/passkeys.ts';
import { endOtherSessions, endSession, listSessions } from '../../admin/sign-in/sessions.ts';
import { confirmPassword, setPassword } from '../../admin/sign-in/sign-in.ts';
import { formatTime } from '../../domain/time.ts';
import { entryOf } from '../../lib/text.ts';
import type { SignInMethod } from '../../store/db/tables.ts';
import type { PasskeyRecord, SessionRecord } from '../../store/sign-in/sign-in-records.ts';
import { findPasswordHash } from '../../store/tenants/member-records.ts';
import { alertBox, type Form, field } from '../pages/form.ts';
import { html, type SafeHtml, seeOther, sendPage } from '../pages/html.ts';
import { sessionOf, signedOut } from '../pages/pages.ts';
import type { RequestContext, Session } from '../state.ts';
import {
  type Faults,
  hasFaults,
  hashInTurn,
  newPasswordFaults,
  newPasswordFields,
  passkeyPlace,
  personOf,
  type SignInPages,
  signIn,
} from './sign-in-context.ts';

const ACCOUNT = '/oauth/interaction/account';

const LOCKED = 'There were too many failed attempts. Try again in at most 15 minutes.';

/** Notices of completed actions, by the word in the address. */
const DONE: Readonly<Record<string, string>> = {
  password: 'Your password is set. All other sessions have ended.',
  passkey: 'The passkey is added.',
  removed: 'The passkey is removed.',
  ended: 'The session has ended.',
};

const METHODS: Readonly<Record<SignInMethod, string>> = {
  password: 'Signed in by password',
  passkey: 'Signed in by passkey',
  link: 'Signed in by link',
  invitation: 'Signed in by invitation',
};

/** Page with the signed-in member and their means to sign in. */
export function accountRoute(context: SignInPages): void {
  const { pages, hasApplications } = context;
  const { store, clock } = context.app;

  pages.get('/oauth/interaction/account', pages.requireSession, (ctx) => sendAccount(ctx));

  pages.post('/oauth/interaction/account/password', pages.requireSession, async (ctx) => {
    const form = await pages.readForm(ctx);
    const { id, member } = sessionOf(ctx);
    const chosen = newPasswordFaults(form, member.email);
    if (hasFaults(chosen)) return sendAccount(ctx, chosen);
    const current = await currentFault(ctx, form);
    if (current !== undefined) return sendAccount(ctx, { current }, current === LOCKED ? 429 : 401);
    const hash = await hashInTurn(ctx, context, form.text('password'));
    await signIn(ctx, context, 'password', (db, now) => {
      // Someone who set a password meanwhile, or ended this session, comes first.
      if (!listSessions(db, member, now).some((session) => session.id === id)) throw signedOut();
      return setPassword(db, personOf(member), hash, now);
    });
    return seeOther(ctx, `${ACCOUNT}?done=password`);
  });

  pages.post('/oauth/interaction/account/sessions/end', pages.requireSession, async (ctx) => {
    const form = await pages.readForm(ctx);
    const { id, member } = sessionOf(ctx);
    const ended = form.text('session');
    await store.write((db, now) =>
      ended === 'others'
        ? endOtherSessions(db, personOf(member), id, now)
        : endSession(db, personOf(member), ended, now),
    );
    seeOther(ctx, `${ACCOUNT}?done=ended`);
  });

  /** A member who has a password must know it to change it; guessing counts as signing in does. */
  async function currentFault(ctx: RequestContext, form: Form): Promise<string | undefined> {
    const { member } = sessionOf(ctx);
    const hash = await store.read((db) => findPasswordHash(db, member.organizationId, member.id));
    if (hash === null) return undefined;
    const attempt = { password: form.text('current'), network: ctx.state.network };
    const isTheirs = await confirmPassword({ ...context.app, turns: context.turns }, member, attempt);
    if (isTheirs === 'locked') return LOCKED;
    return isTheirs ? undefined : 'The current password is incorrect.';
  }

  async function sendAccount(ctx: RequestContext, faults?: Faults, status = 400): Promise<void> {
    const session = sessionOf(ctx);
    const { member } = session;
    const now = clock.now();
    const { sessions, passkeys, hash } = await store.read((db) => ({
      sessions: listSessions(db, member, now),
      passkeys: listPasskeys(db, member),
      hash: findPasswordHash(db, member.organizationId, member.id),
    }));
    const csrf = await pages.csrfField(ctx);
    const place = passkeyPlace(ctx, context);
    sendPage(ctx, {
      title: 'Your account',
      status: faults === undefined ? 200 : status,
      passkeys: place !== undefined,
      body: html`${whoCard(session, csrf, { done: entryOf(DONE, ctx.state.query.get('done') ?? ''), hasApplications })}
${passwordCard(session, csrf, { faults: faults ?? {}, hasPassword: hash !== null })}
${passkeysCard(session, csrf, { passkeys, isPossible: place !== undefined, elsewhere: namedAddress(pages.origin.of(ctx.req)) })}
${sessionsCard(session, csrf, sessions)}`,
    });
  }
}

const whoCard = (
  { member, organizationName }: Session,
  csrf: SafeHtml,
  { done, hasApplications }: { readonly done: string | undefined; readonly hasApplications: boolean },
): SafeHtml =>
  html`<section class="card">
<h1>Your account</h1>
${done && html`<p class="done" role="status">${done}</p>`}
<dl>
${member.name !== null && html`<div><dt>Name</dt><dd>${member.name}</dd></div>`}
<div><dt>E-mail</dt><dd>${member.email}</dd></div>
<div><dt>Organization</dt><dd>${organizationName}</dd></div>
<div><dt>Role</dt><dd>${member.role}</dd></div>
</dl>
${hasApplications && html`<p><a href="/oauth/interaction/applications">Your applications</a></p>`}
<form method="post" action="/oauth/interaction/sign-out">
${csrf}
<button>Sign out</button>
</form>
</section>`;

const passwordCard = (
  { member }: Session,
  csrf: SafeHtml,
  { faults, hasPassword }: { readonly faults: Faults; readonly hasPassword: boolean },
): SafeHtml =>
  html`<section class="card">
<h2>Password</h2>
<p class="hint">Changing your password ends all other sessions.</p>
<form method="post" action="/oauth/interaction/account/password" class="stack">
${csrf}
${alertBox(hasFaults(faults) ? 'The password was not changed.' : undefined)}
<input type="text" name="username" autocomplete="username" value="${member.email}" readonly hidden>
${
  hasPassword &&
  field({
    name: 'current',
    label: 'Current password',
    type: 'password',
    autocomplete: 'current-password',
    fault: faults.current,
  })
}
${newPasswordFields(faults)}
<button class="primary">${hasPassword ? 'Change password' : 'Set password'}</button>
</form>
</section>`;

const passkeysCard = (
  { csrfToken }: Session,
  csrf: SafeHtml,
  {
    passkeys,
    isPossible,
    elsewhere,
  }: {
    readonly passkeys: readonly PasskeyRecord[];
    readonly isPossible: boolean;
    readonly elsewhere: string | undefined;
  },
): SafeHtml =>
  html`<section class="card">
<h2>Passkeys</h2>
${passkeys.length === 0 && html`<p class="hint">No passkeys yet. A passkey lets you sign in with a fingerprint, your face or a PIN.</p>`}
${
  passkeys.length > 0 &&
  html`<ul class="rows">
${passkeys.map(
  ({ id, label, rpId, createdAt, lastUsedAt }) => html`<li>
<div><strong>${label}</strong><p class="hint">${rpId} · added ${day(createdAt)} · ${
    lastUsedAt === null ? 'never used' : `used ${day(lastUsedAt)}`
  }</p></div>
<form method="post" action="/oauth/interaction/account/passkeys/remove">
${csrf}
<button name="passkey" value="${id}" aria-label="Remove passkey ${label}">Remove</button>
</form>
</li>`,
)}
</ul>`
}
${
  isPossible
    ? html`<div class="passkey stack" data-passkey="add" data-csrf="${csrfToken}" hidden>
<div class="field">
<label for="label">Name of the new passkey</label>
<input id="label" type="text" autocomplete="off" maxlength="64" placeholder="Laptop">
</div>
<button type="button">Add a passkey</button>
<p class="fault" role="alert"></p>
</div>
<noscript><p class="hint">Adding a passkey requires JavaScript.</p></noscript>`
    : html`<p class="hint">Passkeys work only over HTTPS with a host name, or on <code>localhost</code>. This page has another address. ${
        elsewhere && html`Sign in at <a href="${elsewhere}">${elsewhere}</a> to add one.`
      }</p>`
}
</section>`;

const sessionsCard = (session: Session, csrf: SafeHtml, sessions: readonly SessionRecord[]): SafeHtml =>
  html`<section class="card">
<h2>Sessions</h2>
<ul class="rows">
${sessions.map(
  ({ id, method, createdAt, lastUsedAt }) => html`<li>
<div><strong>${METHODS[method]}</strong>${id === session.id && html` <span class="tag">this one</span>`}
<p class="hint">since ${moment(createdAt)} · used ${moment(lastUsedAt)}</p></div>
${
  id !== session.id &&
  html`<form method="post" action="/oauth/interaction/account/sessions/end">
${csrf}
<button name="session" value="${id}" aria-label="End the session since ${minute(createdAt)}">End</button>
</form>`
}
</li>`,
)}
</ul>
${
  sessions.length > 1 &&
  html`<form method="post" action="/oauth/interaction/account/sessions/end">
${csrf}
<button name="session" value="others">End all other sessions</button>
</form>`
}
</section>`;

/** Address of this machine by name, if the page was opened by its number. */
function namedAddress(origin: string): string | undefined {
  const url = new URL(origin);
  if (url.hostname !== '127.0.0.1' && url.hostname !== '[::1]') return undefined;
  url.hostname = 'localhost';
  return new URL(ACCOUNT, url).href;
}

const day = (time: number): string => formatTime(time).slice(0, 10);
const minute = (time: number): string => `${formatTime(time).slice(0, 16).replace('T', ' ')} UTC`;

/** A time that the script of the page shows in the reader's time zone, with UTC on hover. */
const moment = (time: number): SafeHtml => html`<time datetime="${formatTime(time)}">${minute(time)}</time>`;

import { acceptInvitation, readOpenInvitation } from '../../admin/sign-in/accept-invitation.ts';
import { endSession } from '../../admin/sign-in/sessions.ts';
import { readHolder, setPassword, signInByPassword, WINDOW_MS } from '../../admin/sign-in/sign-in.ts';
import { readSignInLink, useSignInLink } from '../../admin/sign-in/sign-in-links.ts';
import { ApiError } from '../../domain/errors.ts';
import { OneTime } from '../../domain/identity.ts';
import { hiddenCharacter } from '../../lib/text.ts';
import type { MemberRecord, PasswordHolder } from '../../store/tenants/member-records.ts';
import { getOrganization } from '../../store/tenants/tenants.ts';
import { alertBox, field, localPath } from '../pages/form.ts';
import { html, seeOther, sendPage } from '../pages/html.ts';
import { sessionOf } from '../pages/pages.ts';
import { queryParameter } from '../query.ts';
import type { RequestContext } from '../state.ts';
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

/** The longest e-mail that a member can have. */
const MAX_EMAIL = 254;

/** Destination after a sign-in. */
export const afterSignIn = (next: string): string => localPath(next) ?? ACCOUNT;

const UNFIT = 'The e-mail or password is incorrect.';
const LOCKED =
  'There were too many failed attempts with this e-mail. Try again in at most 15 minutes, use a passkey, or ask for a sign-in link.';

interface Shown {
  readonly status?: number;
  readonly next: string;
  readonly email?: string;
  readonly alert?: string;
  readonly faults?: Faults;
}

/** Those whose password fits in several organizations, until they choose one. */
interface Choice {
  readonly holders: readonly PasswordHolder[];
  readonly next: string;
}

/** Signing in by e-mail and password, and signing out. */
export function signInRoute(context: SignInPages): void {
  const { pages } = context;
  const { store, clock } = context.app;
  const choices = new OneTime<Choice>(clock);

  pages.get('/oauth/interaction/sign-in', async (ctx) => {
    const next = ctx.state.query.get('next') ?? '';
    if ((await pages.currentSession(ctx)) !== undefined) seeOther(ctx, afterSignIn(next));
    else await sendSignIn(ctx, context, { next });
  });

  pages.post('/oauth/interaction/sign-in', async (ctx) => {
    const form = await pages.readForm(ctx);
    const shown = { next: form.text('next'), email: form.text('email').trim() };
    const faults = missing(shown.email, form.text('password'));
    if (hasFaults(faults)) return sendSignIn(ctx, context, { ...shown, status: 400, faults });
    const attempt = { email: shown.email, password: form.text('password'), network: ctx.state.network };
    const outcome = await signInByPassword({ ...context.app, turns: context.turns }, attempt);
    if (outcome === 'locked') {
      ctx.set('retry-after', String(WINDOW_MS / 1000));
      ctx.state.errorCode = 'sign_in_locked';
      return sendSignIn(ctx, context, { ...shown, status: 429, alert: LOCKED });
    }
    const [holder, ...others] = outcome;
    if (holder === undefined) {
      ctx.state.errorCode = 'sign_in_failed';
      return sendSignIn(ctx, context, { ...shown, status: 401, alert: UNFIT });
    }
    if (others.length > 0) {
      choices.put(await pages.csrfToken(ctx), { holders: outcome, next: shown.next });
      return sendChoice(
        ctx,
        outcome.map(({ member }) => member),
      );
    }
    return enter(ctx, holder, shown.next);
  });

  pages.post('/oauth/interaction/sign-in/organization', async (ctx) => {
    const form = await pages.readForm(ctx);
    const choice = choices.take(await pages.csrfToken(ctx));
    const holder = choice?.holders.find(({ member }) => member.organizationId === form.text('organization'));
    if (choice === undefined || holder === undefined) return seeOther(ctx, '/oauth/interaction/sign-in');
    return enter(ctx, holder, choice.next);
  });

  pages.post('/oauth/interaction/sign-out', pages.requireSession, async (ctx) => {
    await pages.readForm(ctx);
    const { id, member } = sessionOf(ctx);
    await store.write((db, now) => endSession(db, personOf(member), id, now));
    pages.setSession(ctx, '');
    seeOther(ctx, '/oauth/interaction/sign-in');
  });

  async function enter(ctx: RequestContext, holder: PasswordHolder, next: string): Promise<void> {
    await signIn(ctx, context, 'password', (db) => {
      const member = readHolder(db, holder);
      if (member === undefined) throw new ApiError(401, 'sign_in_failed', UNFIT);
      return member;
    });
    seeOther(ctx, afterSignIn(next));
  }

  async function sendChoice(ctx: RequestContext, members: readonly MemberRecord[]): Promise<void> {
    const csrf = await pages.csrfField(ctx);
    const organizations = await store.read((db) =>
      members.map(({ organizationId: id, role }) => ({ id, role, name: getOrganization(db, id).name })),
    );
    sendPage(ctx, {
      title: 'Choose an organization',
      body: html`<section class="card">
<h1>Choose an organization</h1>
<p>You are a member of several organizations.</p>
<form method="post" action="/oauth/interaction/sign-in/organization" class="stack">
${csrf}
${organizations.map(
  ({ id, name, role }) =>
    html`<button class="choice" name="organization" value="${id}"><strong>${name}</strong> <span>${role}</span></button>`,
)}
</form>
</section>`,
    });
  }
}

const missing = (email: string, password: string): Faults => ({
  email: email === '' || email.length > MAX_EMAIL ? 'Enter your e-mail address.' : undefined,
  password: password === '' ? 'Enter your password.' : undefined,
});

async function sendSignIn(ctx: RequestContext, context: SignInPages, shown: Shown): Promise<void> {
  const { status = 200, next, email = '', alert, faults = {} } = shown;
  const { pages } = context;
  const place = passkeyPlace(ctx, context);
  const token = await pages.csrfToken(ctx);
  sendPage(ctx, {
    title: 'Sign in',
    status,
    passkeys: place !== undefined,
    body: html`<section class="card">
<h1>Sign in</h1>
${alertBox(alert)}
<form method="post" action="/oauth/interaction/sign-in" class="stack">
<input type="hidden" name="csrf" value="${token}">
<input type="hidden" name="next" value="${next}">
${field({
  name: 'email',
  label: 'E-mail',
  type: 'email',
  autocomplete: 'username',
  value: email,
  maxLength: MAX_EMAIL,
  fault: faults.email,
})}
${field({
  name: 'password',
  label: 'Password',
  type: 'password',
  autocomplete: 'current-password',
  fault: faults.password,
})}
<button class="primary">Sign in</button>
</form>
${
  place !== undefined &&
  html`<div class="passkey" data-passkey="sign-in" data-csrf="${token}" data-next="${next}" hidden>
<p class="or">or</p>
<button type="button">Sign in with a passkey</button>
<p class="fault" role="alert"></p>
</div>`
}
<p class="hint">Forgot your password? Ask an owner or an admin of your organization for a sign-in link. If you run this gateway yourself, make one: <code>portcullis members sign-in-link &lt;your e-mail&gt;</code>.</p>
</section>`,
  });
}

/**
 * Signing in by a link that is used once. Showing it uses nothing up, because programs that look through mail open links; what it is
 * for is in the form.
 */
export function linkRoute(context: SignInPages): void {
  const { pages } = context;
  const { store, clock, peppers } = context.app;
  const reading = () => ({ now: clock.now(), peppers });

  pages.get('/oauth/interaction/link', (ctx) => sendLink(ctx, queryParameter(ctx, 'token') ?? ''));

  pages.post('/oauth/interaction/link', async (ctx) => {
    const form = await pages.readForm(ctx);
    const token = form.text('token');
    const { member } = await store.read((db) => readSignInLink(db, token, reading()));
    const setsPassword = form.text('action') !== 'continue';
    const faults = setsPassword ? newPasswordFaults(form, member.email) : {};
    if (hasFaults(faults)) return sendLink(ctx, token, faults);
    const hash = setsPassword ? await hashInTurn(ctx, context, form.text('password')) : undefined;
    await signIn(ctx, context, 'link', (db, now) => {
      const used = useSignInLink(db, token, { now, peppers });
      return hash === undefined ? used : setPassword(db, personOf(used), hash, now);
    });
    return seeOther(ctx, '/oauth/interaction/account');
  });

  async function sendLink(ctx: RequestContext, token: string, faults?: Faults): Promise<void> {
    const { member, organizationName } = await store.read((db) => readSignInLink(db, token, reading()));
    sendPage(ctx, {
      title: 'Welcome',
      status: faults === undefined ? 200 : 400,
      body: html`<section class="card">
<h1>Welcome</h1>
<p>This link signs you in once as <strong>${member.email}</strong> of <strong>${organizationName}</strong>.</p>
<form method="post" action="/oauth/interaction/link" class="stack">
${await pages.csrfField(ctx)}
<input type="hidden" name="token" value="${token}">
<input type="text" name="username" autocomplete="username" value="${member.email}" readonly hidden>
${newPasswordFields(faults ?? {}, false)}
<button class="primary" name="action" value="password">Set password and sign in</button>
<button name="action" value="continue">Sign in without a new password</button>
</form>
<p class="hint">You can add a passkey after you sign in.</p>
</section>`,
    });
  }
}

/** As the schema of a member has it. */
const MAX_NAME = 256;

/** Becoming a member by the link of an invitation. As with links to sign in, only the form uses it up. */
export function invitationRoute(context: SignInPages): void {
  const { pages } = context;
  const { store, clock, peppers } = context.app;
  const reading = () => ({ now: clock.now(), peppers });

  pages.get('/oauth/interaction/invitation', (ctx) =>
    sendInvitation(ctx, { token: queryParameter(ctx, 'token') ?? '' }),
  );

  pages.post('/oauth/interaction/invitation', async (ctx) => {
    const form = await pages.readForm(ctx);
    const shown = { token: form.text('token'), name: form.text('name').trim() };
    const { email } = await store.read((db) => readOpenInvitation(db, shown.token, reading()));
    const faults = { ...newPasswordFaults(form, email), name: nameFault(shown.name) };
    if (hasFaults(faults)) return sendInvitation(ctx, { ...shown, faults });
    const hash = await hashInTurn(ctx, context, form.text('password'));
    const body = shown.name === '' ? { token: shown.token } : shown;
    await signIn(ctx, context, 'invitation', (db, now) => {
      const { organizationId } = readOpenInvitation(db, shown.token, { now, peppers });
      const { member } = acceptInvitation(db, body, { now, peppers, by: 'person' });
      return setPassword(db, { kind: 'person', organizationId, memberId: member.id }, hash, now);
    });
    return seeOther(ctx, '/oauth/interaction/account');
  });

  interface Shown {
    readonly token: string;
    readonly name?: string;
    readonly faults?: Faults;
  }

  async function sendInvitation(ctx: RequestContext, { token, name = '', faults }: Shown): Promise<void> {
    const { email, role, organizationName } = await store.read((db) => readOpenInvitation(db, token, reading()));
    sendPage(ctx, {
      title: 'Invitation',
      status: faults === undefined ? 200 : 400,
      body: html`<section class="card">
<h1>You are invited</h1>
<p>You will join <strong>${organizationName}</strong>, as <strong>${role}</strong>, with the e-mail <strong>${email}</strong>.</p>
<form method="post" action="/oauth/interaction/invitation" class="stack">
${await pages.csrfField(ctx)}
<input type="hidden" name="token" value="${token}">
<input type="text" name="username" autocomplete="username" value="${email}" readonly hidden>
${field({
  name: 'name',
  label: 'Your name',
  type: 'text',
  autocomplete: 'name',
  value: name,
  maxLength: MAX_NAME,
  required: false,
  fault: faults?.name,
})}
${newPasswordFields(faults ?? {})}
<button class="primary">Accept and sign in</button>
</form>
</section>`,
    });
  }
}

function nameFault(name: string): string | undefined {
  const hidden = hiddenCharacter(name);
  if (hidden !== undefined) return `Leave out ${hidden}: it cannot be seen.`;
  return [...name].length > MAX_NAME ? `Use at most ${MAX_NAME} characters.` : undefined;
}

import { endSession } from '../../../admin/sign-in/sessions.ts';
import { readHolder, signInByPassword, WINDOW_MS } from '../../../admin/sign-in/sign-in.ts';
import { ApiError } from '../../../domain/errors.ts';
import { OneTime } from '../../../domain/one-time.ts';
import type { MemberRecord, PasswordHolder } from '../../../store/tenants/members.ts';
import { getOrganization } from '../../../store/tenants/tenants.ts';
import { alertBox, field } from '../../pages/fields.ts';
import { html } from '../../pages/html.ts';
import { localPath } from '../../pages/local-path.ts';
import { seeOther, sendPage } from '../../pages/page.ts';
import { sessionOf } from '../../pages/pages.ts';
import type { AppContext } from '../../state.ts';
import { type Faults, hasFaults } from './new-password.ts';
import { passkeyPlace, personOf, type SignInPages, signIn } from './sign-in-deps.ts';

const ACCOUNT = '/oauth/interaction/account';

/** The longest e-mail that a member can have. */
const MAX_EMAIL = 254;

/** Where a sign-in leads. */
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
  const { pages, store, clock } = context;
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
    const outcome = await signInByPassword(context, attempt);
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

  async function enter(ctx: AppContext, holder: PasswordHolder, next: string): Promise<void> {
    await signIn(ctx, context, 'password', (db) => {
      const member = readHolder(db, holder);
      if (member === undefined) throw new ApiError(401, 'sign_in_failed', UNFIT);
      return member;
    });
    seeOther(ctx, afterSignIn(next));
  }

  async function sendChoice(ctx: AppContext, members: readonly MemberRecord[]): Promise<void> {
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

async function sendSignIn(ctx: AppContext, context: SignInPages, shown: Shown): Promise<void> {
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

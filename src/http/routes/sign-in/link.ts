import { setPassword } from '../../../admin/sign-in/set-password.ts';
import { readSignInLink, useSignInLink } from '../../../admin/sign-in/sign-in-links.ts';
import { html } from '../../pages/html.ts';
import { seeOther, sendPage } from '../../pages/page.ts';
import { queryParameter } from '../../request/query-parameter.ts';
import type { AppContext } from '../../state.ts';
import { type Faults, hasFaults, newPasswordFaults, newPasswordFields } from './new-password.ts';
import { hashInTurn, personOf, type SignInPages, signIn } from './sign-in-deps.ts';

/**
 * Signing in by a link that is used once. Showing it uses nothing up, because programs that look through mail open links; what it is
 * for is in the form.
 */
export function linkRoute(context: SignInPages): void {
  const { pages, store, clock, peppers } = context;
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

  async function sendLink(ctx: AppContext, token: string, faults?: Faults): Promise<void> {
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

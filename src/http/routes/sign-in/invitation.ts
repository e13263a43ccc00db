import { acceptInvitation, readOpenInvitation } from '../../../admin/sign-in/accept-invitation.ts';
import { setPassword } from '../../../admin/sign-in/set-password.ts';
import { hiddenCharacter } from '../../../lib/text.ts';
import { field } from '../../pages/fields.ts';
import { html } from '../../pages/html.ts';
import { seeOther, sendPage } from '../../pages/page.ts';
import { queryParameter } from '../../request/query-parameter.ts';
import type { AppContext } from '../../state.ts';
import { type Faults, hasFaults, newPasswordFaults, newPasswordFields } from './new-password.ts';
import { hashInTurn, type SignInPages, signIn } from './sign-in-deps.ts';

/** As the schema of a member has it. */
const MAX_NAME = 256;

/** Becoming a member by the link of an invitation. As with links to sign in, only the form uses it up. */
export function invitationRoute(context: SignInPages): void {
  const { pages, store, clock, peppers } = context;
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

  async function sendInvitation(ctx: AppContext, { token, name = '', faults }: Shown): Promise<void> {
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

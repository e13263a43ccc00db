import { allowApplication } from '../../admin/keys/oauth-grants.ts';
import { ApiError } from '../../domain/errors.ts';
import { clientHost } from '../../domain/identity.ts';
import type { AuthorizationServer, ConsentRequest } from '../../oauth/authorization-server.ts';
import { noRequest } from '../../oauth/oauth-requests.ts';
import type { AppContext } from '../app-context.ts';
import { alertBox, type Form } from '../pages/form.ts';
import { faultPage, html, PAGES, type SafeHtml, seeOther, sendPage } from '../pages/html.ts';
import { type Pages, sessionOf } from '../pages/pages.ts';
import type { RequestContext, Session } from '../state.ts';
import { chosenKey, type KeyChoices, keyFields, listKeyChoices, personOf } from './key-choice.ts';
import { serverFor } from './oauth-endpoints.ts';

/** The page on which a member allows an application to act for them. @param id of the interaction */
export const consentPath = (id: string): string => `${PAGES}/consent/${id}`;

/** Shows a person why a request of an application cannot be answered. */
export const showOAuthError = (ctx: Parameters<typeof sendPage>[0], status: number, message: string): void =>
  sendPage(ctx, { ...faultPage({ status, message }), status });

/** Consent: a signed-in member chooses or makes the key that an application acts with, and allows it or refuses. */
export function consentRoutes(pages: Pages, app: AppContext): void {
  const { store, clock, peppers } = app;

  pages.get(consentPath(':id'), pages.requireSession, async (ctx) => {
    const { request } = await requestFor(ctx);
    await show(ctx, request);
  });

  pages.post(consentPath(':id'), pages.requireSession, async (ctx) => {
    const form = await pages.readForm(ctx);
    const { request, server } = await requestFor(ctx);
    if (form.text('answer') === 'refuse') return seeOther(ctx, await server.refuse(ctx.req, ctx.res, request));
    try {
      return seeOther(ctx, await allow(ctx, server, request, form));
    } catch (error) {
      if (error instanceof ApiError && error.status === 400) return show(ctx, request, { form, fault: error.message });
      throw error;
    }
  });

  async function requestFor(
    ctx: RequestContext,
  ): Promise<{ readonly request: ConsentRequest; readonly server: AuthorizationServer }> {
    const { server } = await serverFor(ctx, app);
    const request = await server.consentRequest(ctx.req, ctx.res);
    if (request === undefined || ctx.path !== consentPath(request.id)) throw noRequest();
    return { request, server };
  }

  function allow(
    ctx: RequestContext,
    server: AuthorizationServer,
    request: ConsentRequest,
    form: Form,
  ): Promise<string> {
    const person = personOf(sessionOf(ctx));
    const { clientId, clientName } = request;
    return server.allow(ctx.req, ctx.res, request, person.memberId, (db, id, now) => {
      const keyId = chosenKey(db, person, form, clientName, { now, pepper: peppers[0] });
      allowApplication(db, person, { id, keyId, clientId, clientName }, now);
    });
  }

  async function show(
    ctx: RequestContext,
    request: ConsentRequest,
    sent?: { readonly form: Form; readonly fault: string },
  ): Promise<void> {
    const session = sessionOf(ctx);
    const person = personOf(session);
    const now = clock.now();
    const choices = await store.read((db) => listKeyChoices(db, person, now));
    sendPage(ctx, {
      title: `Connect ${request.clientName}`,
      status: sent === undefined ? 200 : 400,
      formAction: [formTarget(request.redirectUri)],
      body: consentCard({ session, request, choices, sent, csrf: await pages.csrfField(ctx) }),
    });
  }
}

/** Destination that a form may lead to: an origin, or the scheme of an application. */
function formTarget(redirectUri: string): string {
  const { protocol, origin } = new URL(redirectUri);
  return protocol === 'http:' || protocol === 'https:' ? origin : protocol;
}

/** Destination of the answer, as people can check it. */
function targetName(redirectUri: string): string {
  const { protocol, host } = new URL(redirectUri);
  return protocol === 'http:' || protocol === 'https:' ? host : `${protocol}//`;
}

interface Shown {
  readonly session: Session;
  readonly request: ConsentRequest;
  readonly choices: KeyChoices;
  readonly sent: { readonly form: Form; readonly fault: string } | undefined;
  readonly csrf: SafeHtml;
}

const consentCard = ({ session, request, choices, sent, csrf }: Shown): SafeHtml => {
  const host = clientHost(request.clientId);
  return html`<section class="card">
<h1>Connect ${request.clientName}</h1>
<p><strong>${request.clientName}</strong> wants to call models for you through the MCP endpoint of <strong>${session.organizationName}</strong>. You will be sent back to <strong>${targetName(request.redirectUri)}</strong>. Allow this only if you started it yourself, in an application that you know.</p>
${host && html`<p>Its name and other details come from <strong>${host}</strong>.</p>`}
<p class="hint">You are signed in as ${session.member.email}. The application can do what its key allows: the key's rules and limits apply to it, and its access ends when the key ends.</p>
<form method="post" action="${consentPath(request.id)}" class="stack">
${csrf}
${alertBox(sent?.fault)}
${keyFields(choices, sent?.form)}
<button class="primary" name="answer" value="allow">Allow</button>
<button name="answer" value="refuse">Refuse</button>
</form>
</section>`;
};

import { allowApplication, endApplication, listApplications } from '../../admin/keys/oauth-grants.ts';
import { checkVisibleText } from '../../domain/check-shape.ts';
import { ApiError, invalidRequest, notFound } from '../../domain/errors.ts';
import { clientHost, mcpResource, OAUTH_PATHS, OneTime } from '../../domain/identity.ts';
import { formatTime } from '../../domain/time.ts';
import { checkRoom, LONGEST } from '../../oauth/oauth-requests.ts';
import { createMachineClient, type MachineClient } from '../../oauth/sqlite-adapter.ts';
import type { OAuthGrant } from '../../store/sign-in/oauth.ts';
import { findKey, type KeyRecord } from '../../store/tenants/key-records.ts';
import type { AppContext } from '../app-context.ts';
import { alertBox, type Form, field } from '../pages/form.ts';
import { html, PAGES, type SafeHtml, seeOther, sendPage } from '../pages/html.ts';
import { type Pages, sessionOf } from '../pages/pages.ts';
import { NEEDS_PUBLIC_URL, oauthOrigin } from '../pipeline.ts';
import type { RequestContext } from '../state.ts';
import { chosenKey, type KeyChoices, keyFields, listKeyChoices, personOf } from './key-choice.ts';

const APPLICATIONS = `${PAGES}/applications`;

/** An application that was made, until its secret is shown. */
interface NewApplication {
  readonly name: string;
  readonly client: MachineClient;
  /** At which OAuth is served. */
  readonly origin: string;
}

/** Form as sent, and its faults. */
interface Sent {
  readonly form: Form;
  readonly fault: string;
}

/** The applications that a member lets act for them, each with its key, and the end of each. Those that act by themselves are made here. */
export function applicationsRoutes(pages: Pages, app: AppContext): void {
  const { store, clock, peppers, gateway } = app;
  const made = new OneTime<NewApplication>(clock);

  pages.get('/oauth/interaction/applications', pages.requireSession, (ctx) => show(ctx));

  pages.post('/oauth/interaction/applications', pages.requireSession, async (ctx) => {
    const form = await pages.readForm(ctx);
    const origin = oauthOrigin(ctx.req, gateway.hosts);
    if (origin === undefined) throw notFound(NEEDS_PUBLIC_URL);
    try {
      const name = nameOf(form);
      made.put(await pages.csrfToken(ctx), { name, client: await make(ctx, form, name), origin });
      seeOther(ctx, `${APPLICATIONS}/new`);
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 400)) throw error;
      await show(ctx, { form, fault: error.message });
    }
  });

  // A page of its own: reloading the answer to the form would make another application.
  pages.get('/oauth/interaction/applications/new', pages.requireSession, async (ctx) => {
    const shown = made.take(await pages.csrfToken(ctx));
    if (shown === undefined) return seeOther(ctx, APPLICATIONS);
    return sendPage(ctx, { title: shown.name, body: secretCard(shown) });
  });

  pages.post('/oauth/interaction/applications/end', pages.requireSession, async (ctx) => {
    const form = await pages.readForm(ctx);
    const person = personOf(sessionOf(ctx));
    await store.write((db, now) => endApplication(db, person, form.text('application'), now));
    seeOther(ctx, APPLICATIONS);
  });

  function make(ctx: RequestContext, form: Form, name: string): Promise<MachineClient> {
    const person = personOf(sessionOf(ctx));
    const registrant = `member:${person.memberId}` as const;
    return createMachineClient(app, name, {
      registrant,
      admit: (db, { id }, now) => {
        checkRoom(db, registrant, now);
        const keyId = chosenKey(db, person, form, name, { now, pepper: peppers[0] });
        allowApplication(db, person, { id, keyId, clientId: id, clientName: name }, now);
      },
    });
  }

  async function show(ctx: RequestContext, sent?: Sent): Promise<void> {
    const person = personOf(sessionOf(ctx));
    const { organizationId } = person;
    const now = clock.now();
    const { rows, choices } = await store.read((db) => ({
      rows: listApplications(db, person).map((grant) => ({ grant, key: findKey(db, organizationId, grant.keyId) })),
      choices: listKeyChoices(db, person, now),
    }));
    const csrf = await pages.csrfField(ctx);
    sendPage(ctx, {
      title: 'Your applications',
      status: sent === undefined ? 200 : 400,
      body: html`<section class="card">
<h1>Your applications</h1>
<p class="hint">These applications act for you by OAuth, each with one of your keys. An application loses access when you revoke it, or when its key is disabled, deleted or expires. Revoking it leaves the key as it is.</p>
${
  rows.length === 0
    ? html`<p>You have no applications yet.</p>`
    : html`<ul class="rows">${rows.map(({ grant, key }) => row(grant, key, csrf))}</ul>`
}
<p><a href="${PAGES}/account">Your account</a></p>
</section>
${oauthOrigin(ctx.req, gateway.hosts) !== undefined && newCard(choices, sent, csrf)}`,
    });
  }
}

/** @throws ApiError 400 */
function nameOf(form: Form): string {
  const name = form.text('name').trim();
  if (name === '' || name.length > LONGEST.name)
    throw invalidRequest(`Give the application a name of at most ${LONGEST.name} characters.`);
  checkVisibleText(name, 'The name', '/name');
  return name;
}

const row = (
  { id, clientId, clientName, createdAt }: OAuthGrant,
  key: KeyRecord | undefined,
  csrf: SafeHtml,
): SafeHtml =>
  html`<li>
<div><strong>${clientName}</strong>
<p class="hint">${[clientHost(clientId), `key ${key?.description ?? ''} ${key?.mask ?? ''}`, `since ${formatTime(createdAt).slice(0, 10)}`].filter(Boolean).join(' · ')}</p></div>
<form method="post" action="${APPLICATIONS}/end">
${csrf}
<button name="application" value="${id}" aria-label="Revoke ${clientName}">Revoke</button>
</form>
</li>`;

const newCard = (choices: KeyChoices, sent: Sent | undefined, csrf: SafeHtml): SafeHtml =>
  html`<section class="card">
<h2>Create a service application</h2>
<p class="hint">For a job or service that runs without a user. It gets a client id and a client secret to fetch access tokens with, and can do what its key allows.</p>
<form method="post" action="${APPLICATIONS}" class="stack">
${csrf}
${alertBox(sent?.fault)}
${field({ name: 'name', label: 'Name', type: 'text', autocomplete: 'off', maxLength: LONGEST.name, value: sent?.form.text('name') ?? '' })}
${keyFields(choices, sent?.form)}
<button class="primary">Create application</button>
</form>
</section>`;

const secretCard = ({ name, client: { id, secret }, origin }: NewApplication): SafeHtml =>
  html`<section class="card">
<h1>${name}</h1>
<p>Copy the secret now. It is not shown again.</p>
<dl>
<div><dt>Client id</dt><dd><code>${id}</code></dd></div>
<div><dt>Client secret</dt><dd><code>${secret}</code></dd></div>
<div><dt>Token endpoint</dt><dd><code>${origin + OAUTH_PATHS.token}</code></dd></div>
<div><dt>MCP endpoint</dt><dd><code>${mcpResource(origin)}</code></dd></div>
</dl>
<p>With these in the environment variables <code>CLIENT_ID</code> and <code>CLIENT_SECRET</code>, this command gets an access token, valid for one hour:</p>
<p><code class="command">curl ${origin + OAUTH_PATHS.token} -u "$CLIENT_ID:$CLIENT_SECRET" -d grant_type=client_credentials</code></p>
<p>Send it to the MCP endpoint as <code>Authorization: Bearer</code>.</p>
<p><a href="${APPLICATIONS}">Your applications</a></p>
</section>`;

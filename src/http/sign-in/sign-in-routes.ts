import {
  addPasskey,
  listPasskeys,
  notePasskeyUse,
  type PasskeyPlace,
  passkeyCreation,
  passkeyRequest,
  refusedPasskey,
  removePasskey,
  verifyPasskeyCreation,
  verifyPasskeyUse,
} from '../../admin/sign-in/passkeys.ts';
import { checkShape } from '../../domain/check-shape.ts';
import { invalidRequest } from '../../domain/errors.ts';
import { OneTime } from '../../domain/identity.ts';
import { Turns } from '../../domain/turns.ts';
import { validator } from '../../lib/schemas.ts';
import { findPasskeyByCredential } from '../../store/sign-in/sign-in-records.ts';
import type { PagesContext } from '../app-context.ts';
import { jsonBody } from '../body.ts';
import { MAX_FORM_BYTES } from '../pages/form.ts';
import { ASSETS, type AssetName, seeOther } from '../pages/html.ts';
import { type Pages, sessionOf } from '../pages/pages.ts';
import type { AppMiddleware, RequestContext } from '../state.ts';
import { accountRoute } from './account-page.ts';
import { passkeyPlace, personOf, type SignInPages, signIn } from './sign-in-context.ts';
import { afterSignIn, invitationRoute, linkRoute, signInRoute } from './sign-in-page.ts';

/**
 * The pages on which members sign in and look after that, on both listeners. They are for people: `/openapi.json` does not describe
 * them, and the README of `src/http` does.
 */
export function signInRoutes(
  pages: Pages,
  app: PagesContext,
  { hasApplications }: Pick<SignInPages, 'hasApplications'>,
): void {
  // One at a time on each listener: a hash takes 19 MB, and one of the four threads that files and names are waiting for, too.
  const turns = new Turns({ what: 'sign-ins', maxWaiting: 32, maxWaitingEach: 8, maxWaitMs: 10_000 });
  const context = { app, pages, turns, hasApplications };
  assetRoutes(pages);
  signInRoute(context);
  linkRoute(context);
  invitationRoute(context);
  accountRoute(context);
  passkeyRoutes(context);
}

/** Challenges for the browser to sign, each for one page of one session, once. */
type Challenges = OneTime<string>;

/** Passkeys: adding, removing, and signing in with one. All but removing is asked for by a script, in JSON. */
function passkeyRoutes(context: SignInPages): void {
  const { pages } = context;
  const { store, clock, bodyLimits, telemetry } = context.app;
  const { requireSession, checkScript } = pages;
  const body = jsonBody({ ...bodyLimits, bytes: Math.min(bodyLimits.bytes, MAX_FORM_BYTES) }, telemetry);
  const creations: Challenges = new OneTime(clock);
  const uses: Challenges = new OneTime(clock);

  /** @throws ApiError 400 */
  function placeFor(ctx: RequestContext): PasskeyPlace {
    const place = passkeyPlace(ctx, context);
    if (place !== undefined) return place;
    throw invalidRequest('Passkeys work only over HTTPS with a host name, or on localhost.');
  }

  /** @throws ApiError 400 */
  async function takeChallenge(ctx: RequestContext, challenges: Challenges): Promise<string> {
    const challenge = challenges.take(await pages.csrfToken(ctx));
    if (challenge === undefined) throw invalidRequest('This took too long. Try again.');
    return challenge;
  }

  async function sendOptions(ctx: RequestContext, challenges: Challenges, ceremony: ReturnType<typeof passkeyRequest>) {
    const { options, challenge } = await ceremony;
    challenges.put(await pages.csrfToken(ctx), challenge);
    sendScript(ctx, options);
  }

  pages.post('/oauth/interaction/account/passkeys/options', requireSession, checkScript, async (ctx) => {
    const { member } = sessionOf(ctx);
    const present = await store.read((db) => listPasskeys(db, member));
    await sendOptions(ctx, creations, passkeyCreation(member, placeFor(ctx), present));
  });

  pages.post('/oauth/interaction/account/passkeys', requireSession, checkScript, body, async (ctx) => {
    const registration = checkShape(validator('PasskeyRegistration'), ctx.state.body);
    const challenge = await takeChallenge(ctx, creations);
    const passkey = await verifyPasskeyCreation(registration, placeFor(ctx), challenge);
    await store.write((db, now) => addPasskey(db, personOf(sessionOf(ctx).member), passkey, now));
    sendScript(ctx, { next: '/oauth/interaction/account?done=passkey' });
  });

  pages.post('/oauth/interaction/account/passkeys/remove', requireSession, async (ctx) => {
    const form = await pages.readForm(ctx);
    const { member } = sessionOf(ctx);
    await store.write((db, now) => removePasskey(db, personOf(member), form.text('passkey'), now));
    seeOther(ctx, '/oauth/interaction/account?done=removed');
  });

  pages.post('/oauth/interaction/sign-in/passkey/options', checkScript, (ctx) =>
    sendOptions(ctx, uses, passkeyRequest(placeFor(ctx))),
  );

  pages.post('/oauth/interaction/sign-in/passkey', checkScript, body, async (ctx) => {
    const assertion = checkShape(validator('PasskeyAssertion'), ctx.state.body);
    const challenge = await takeChallenge(ctx, uses);
    const { id } = assertion.credential;
    const passkey = await store.read((db) => findPasskeyByCredential(db, id));
    const counter = await verifyPasskeyUse(assertion, placeFor(ctx), challenge, passkey);
    if (passkey === undefined) throw refusedPasskey();
    await signIn(ctx, context, 'passkey', (db, now) => notePasskeyUse(db, passkey, counter, now));
    sendScript(ctx, { next: afterSignIn(assertion.next) });
  });
}

function sendScript(ctx: RequestContext, answer: object): void {
  ctx.set('cache-control', 'no-store');
  ctx.body = answer;
}

const asset =
  (name: AssetName): AppMiddleware =>
  (ctx) => {
    const { type, bytes } = ASSETS[name];
    // Its address changes with it.
    ctx.set({ 'cache-control': 'public, max-age=31536000, immutable', 'x-content-type-options': 'nosniff' });
    ctx.type = type;
    ctx.body = bytes;
  };

function assetRoutes(pages: Pages): void {
  pages.get('/oauth/interaction/assets/style.css', asset('style.css'));
  pages.get('/oauth/interaction/assets/page.js', asset('page.js'));
}

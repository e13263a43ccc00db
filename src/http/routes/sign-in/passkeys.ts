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
} from '../../../admin/sign-in/passkeys.ts';
import { checkShape } from '../../../domain/check-shape.ts';
import { invalidRequest } from '../../../domain/errors.ts';
import { OneTime } from '../../../domain/one-time.ts';
import { validatePasskeyAssertion, validatePasskeyRegistration } from '../../../generated/validators.js';
import { findPasskeyByCredential } from '../../../store/sign-in/passkeys.ts';
import { jsonBody } from '../../middleware/json-body.ts';
import { MAX_FORM_BYTES } from '../../pages/form.ts';
import { seeOther } from '../../pages/page.ts';
import { sessionOf } from '../../pages/pages.ts';
import type { AppContext } from '../../state.ts';
import { afterSignIn } from './sign-in.ts';
import { passkeyPlace, personOf, type SignInPages, signIn } from './sign-in-deps.ts';

/** What the browser is asked to sign, for one page of one session, once. */
type Challenges = OneTime<string>;

/** Passkeys: adding, removing, and signing in with one. All but removing is asked for by a script, in JSON. */
export function passkeyRoutes(context: SignInPages): void {
  const { pages, store, clock, bodyLimits, telemetry } = context;
  const { requireSession, checkScript } = pages;
  const body = jsonBody({ ...bodyLimits, bytes: Math.min(bodyLimits.bytes, MAX_FORM_BYTES) }, telemetry);
  const creations: Challenges = new OneTime(clock);
  const uses: Challenges = new OneTime(clock);

  /** @throws ApiError 400 */
  function placeFor(ctx: AppContext): PasskeyPlace {
    const place = passkeyPlace(ctx, context);
    if (place !== undefined) return place;
    throw invalidRequest('Passkeys work only over HTTPS with a host name, or on localhost.');
  }

  /** @throws ApiError 400 */
  async function takeChallenge(ctx: AppContext, challenges: Challenges): Promise<string> {
    const challenge = challenges.take(await pages.csrfToken(ctx));
    if (challenge === undefined) throw invalidRequest('This took too long. Try again.');
    return challenge;
  }

  async function sendOptions(ctx: AppContext, challenges: Challenges, ceremony: ReturnType<typeof passkeyRequest>) {
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
    const registration = checkShape(validatePasskeyRegistration, ctx.state.body);
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
    const assertion = checkShape(validatePasskeyAssertion, ctx.state.body);
    const challenge = await takeChallenge(ctx, uses);
    const { id } = assertion.credential;
    const passkey = await store.read((db) => findPasskeyByCredential(db, id));
    const counter = await verifyPasskeyUse(assertion, placeFor(ctx), challenge, passkey);
    if (passkey === undefined) throw refusedPasskey();
    await signIn(ctx, context, 'passkey', (db, now) => notePasskeyUse(db, passkey, counter, now));
    sendScript(ctx, { next: afterSignIn(assertion.next) });
  });
}

function sendScript(ctx: AppContext, answer: object): void {
  ctx.set('cache-control', 'no-store');
  ctx.body = answer;
}

import { Turns } from '../../../domain/turns.ts';
import type { Pages } from '../../pages/pages.ts';
import { accountRoute } from './account.ts';
import { assetRoutes } from './assets.ts';
import { invitationRoute } from './invitation.ts';
import { linkRoute } from './link.ts';
import { passkeyRoutes } from './passkeys.ts';
import { signInRoute } from './sign-in.ts';
import type { SignInDeps } from './sign-in-deps.ts';

/**
 * The pages on which members sign in and look after that, on both listeners. They are for people: `/openapi.json` does not describe
 * them, and the README of `src/http` does.
 */
export function signInRoutes(pages: Pages, deps: SignInDeps): void {
  // One at a time on each listener: a hash takes 19 MB, and one of the four threads that files and names are waiting for, too.
  const turns = new Turns({ what: 'sign-ins', maxWaiting: 32, maxWaitingEach: 8, maxWaitMs: 10_000 });
  const context = { ...deps, pages, turns };
  assetRoutes(pages);
  signInRoute(context);
  linkRoute(context);
  invitationRoute(context);
  accountRoute(context);
  passkeyRoutes(context);
}

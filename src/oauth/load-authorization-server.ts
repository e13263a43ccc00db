import type { AuthorizationServer, AuthorizationServerDeps } from './authorization-server.ts';

/** `oidc-provider` warns of every Node whose `process.release` has no LTS name, which the pinned one of Portcullis lacks. */
const NEEDLESS = 'oidc-provider WARNING: Unsupported runtime';

/** Loads the authorization server's code with the first need for it: gateways without OAuth keep the memory. */
export async function loadAuthorizationServer(deps: AuthorizationServerDeps): Promise<AuthorizationServer> {
  const { warn } = console;
  console.warn = (...words) => {
    if (!words.join(' ').includes(NEEDLESS)) warn(...words);
  };
  try {
    const { AuthorizationServer } = await import('./authorization-server.ts');
    return new AuthorizationServer(deps);
  } finally {
    console.warn = warn;
  }
}

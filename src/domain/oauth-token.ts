import { createHash } from 'node:crypto';

/** What access to the gateway is called in OAuth: the only scope there is. */
export const SCOPE = 'mcp';

/** Where the authorization server is. */
export const OAUTH_PATHS = {
  authorize: '/oauth/authorize',
  token: '/oauth/token',
  register: '/oauth/register',
  revoke: '/oauth/revoke',
  keys: '/oauth/jwks',
} as const;

/** The resource that tokens are for: the MCP endpoint at an origin. */
export const resourceOf = (origin: string): string => `${origin}/mcp`;

/**
 * In which form tokens, codes and client secrets of the authorization server are stored: SHA-256. They are 256 random bits, so that
 * no pepper is needed.
 */
export const hashOAuthSecret = (secret: string): string => createHash('sha256').update(secret).digest('base64url');

/** The host that describes a client, where its id is the URL of its metadata; those that registered have other ids. */
export const clientHost = (clientId: string): string | undefined => URL.parse(clientId)?.host;

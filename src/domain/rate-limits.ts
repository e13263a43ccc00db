/** What is limited apart from each other (src/http/README.md, "Rates and load"). */
export type LimitedEndpoint = 'chat' | 'images' | 'models' | 'moderations' | 'mcp' | 'management' | 'sign_in' | 'oauth';

/**
 * Requests a minute that an organization may make of each endpoint, and a master key of the management host; undefined: as many as
 * they like.
 */
export type RateLimits = Readonly<Record<Exclude<LimitedEndpoint, 'sign_in' | 'oauth'>, number | undefined>>;

/** Forms a minute that an address may send to the pages of sign-in: enough for an office behind one address, too few to guess with. */
export const SIGN_IN_RATE = 60;

/** Requests a minute that an address may make of the authorization server: a client needs three to begin, and one an hour. */
export const OAUTH_RATE = 120;

/** What is limited apart from each other (src/http/README.md, "Rates and load"). */
export type LimitedEndpoint = 'chat' | 'images' | 'models' | 'moderations' | 'mcp' | 'management' | 'sign_in' | 'oauth';

/**
 * Requests a minute that an organization may make of each endpoint, and a master key of the management host; undefined: as many as
 * they like.
 */
export type RateLimits = Readonly<Record<Exclude<LimitedEndpoint, 'sign_in' | 'oauth'>, number | undefined>>;

/** Forms a minute that an address may send to the pages of sign-in: enough for an office behind one address, too few to guess with. */
const SIGN_IN_RATE = 60;

/** Requests a minute that an address may make of the authorization server: a client needs three to begin, and one an hour. */
const OAUTH_RATE = 120;

/** Requests a minute at each endpoint, those included that nobody sets. */
export const limitsOf = (limits: RateLimits): Readonly<Record<LimitedEndpoint, number | undefined>> => ({
  ...limits,
  sign_in: SIGN_IN_RATE,
  oauth: OAUTH_RATE,
});

/** Whose limit it is. */
export type RateScope = 'address' | 'master_key' | 'key' | 'member' | 'project' | 'organization';

/** What a key, its owner, its project or its organization may take in a minute; null: as much as they like. */
export interface MinuteLimits {
  readonly requestsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
}

/** The limits a minute of one of those that a key belongs to; at least one of them is set. */
export interface KeyRate {
  readonly scope: Exclude<RateScope, 'address' | 'master_key'>;
  readonly subjectId: string;
  readonly requests: number | null;
  readonly tokens: number | null;
}

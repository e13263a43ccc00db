/** What is limited apart from each other (decisions.md, section 9). */
export type LimitedEndpoint = 'chat' | 'images' | 'models' | 'moderations' | 'mcp' | 'management';

/**
 * Requests a minute that an organization may make of each endpoint, and a master key of the management host; undefined: as many as
 * they like.
 */
export type RateLimits = Readonly<Record<LimitedEndpoint, number | undefined>>;

/** What is limited apart from each other (decisions.md, section 9). */
export type LimitedEndpoint = 'chat' | 'images' | 'models' | 'moderations';

/** Requests a minute that an organization may make of each endpoint; undefined: as many as it likes. */
export type RateLimits = Readonly<Record<LimitedEndpoint, number | undefined>>;

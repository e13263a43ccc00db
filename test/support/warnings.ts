/** What a rule on addresses is answered with while nobody has said which proxies are to be believed. */
export const PROXIES_UNSET =
  'TRUSTED_PROXIES is not set: the client address is whatever X-Forwarded-For says, so a caller can forge it, and callers without that header, such as those that connect directly, have none and are denied. Set it to the ranges of your proxies, or to `none` where callers connect directly.';

import cors from '@koa/cors';
import type { AppMiddleware } from '../state.ts';

/** Headers of answers that a web page may read. */
const READABLE = [
  'retry-after',
  'www-authenticate',
  'x-cache',
  'x-decision-id',
  'x-dropped-parameters',
  'x-ratelimit-limit-requests',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-reset-requests',
  'x-request-id',
  'x-should-retry',
];

/**
 * Lets web pages of these origins call the gateway (CORS), each with a key of its own: no cookie is ever allowed. To all other
 * origins nothing is said, so that browsers refuse them.
 */
export function crossOrigin(allowedOrigins: readonly string[]): AppMiddleware {
  const allowed = new Set(allowedOrigins);
  return cors({
    origin: ({ req }) => (allowed.has(req.headers.origin ?? '') ? (req.headers.origin ?? '') : ''),
    allowMethods: ['GET', 'POST'],
    exposeHeaders: READABLE,
    maxAge: 600,
  });
}

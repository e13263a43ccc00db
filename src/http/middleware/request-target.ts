import { ApiError, invalidRequest } from '../../domain/errors.ts';
import type { AppMiddleware } from '../state.ts';

const MAX_LENGTH = 8192;
const MAX_PARAMETERS = 64;

const AMPERSAND = '&'.charCodeAt(0);

function parametersOf(text: string): number {
  let parameters = 1;
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) === AMPERSAND) parameters += 1;
  return parameters;
}

/** @throws ApiError 431, 400 */
function parsed(text: string): URLSearchParams {
  if (text.length > MAX_LENGTH) {
    throw new ApiError(431, 'request_too_large', `The query of the request is longer than ${MAX_LENGTH} bytes.`);
  }
  if (parametersOf(text) > MAX_PARAMETERS) {
    throw invalidRequest(`The query of the request has more than ${MAX_PARAMETERS} parameters.`);
  }
  return new URLSearchParams(text);
}

/**
 * The query, parsed once, and only if it is bounded (src/http/README.md, "Rates and load"). Koa's own `ctx.query` must not be
 * used: it takes time with the square of the number of parameters.
 */
export const query: AppMiddleware = (ctx, next) => {
  const url = ctx.req.url ?? '';
  const mark = url.indexOf('?');
  if (mark !== -1) ctx.state.query = parsed(url.slice(mark + 1));
  return next();
};

/** A path that cannot be decoded names nothing: 400, before the router would take it as it stands. */
export const decodablePath: AppMiddleware = (ctx, next) => {
  try {
    if (ctx.path.includes('%')) decodeURIComponent(ctx.path);
  } catch {
    throw invalidRequest('The path of the request is not valid percent-encoding.');
  }
  return next();
};

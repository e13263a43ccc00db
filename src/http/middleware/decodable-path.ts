import { invalidRequest } from '../../domain/errors.ts';
import type { AppMiddleware } from '../state.ts';

/** A path that cannot be decoded names nothing: 400, before the router would take it as it stands. */
export const decodablePath: AppMiddleware = (ctx, next) => {
  try {
    decodeURIComponent(ctx.path);
  } catch {
    throw invalidRequest('The path of the request is not valid percent-encoding.');
  }
  return next();
};

import { newId } from '../../domain/id.ts';
import { departureOf } from '../connection/departure.ts';
import { type AppMiddleware, RequestState } from '../state.ts';

const WELL_FORMED = /^[A-Za-z0-9._-]{1,64}$/;

/**
 * Begins the request's state with an id of ours; the caller's own is kept next to it if it is well formed (src/http/README.md,
 * "Errors and hostile input").
 */
export const requestId: AppMiddleware = (ctx, next) => {
  const id = newId('req');
  ctx.state = new RequestState(id, departureOf(ctx.req.socket));
  ctx.res.setHeader('x-request-id', id);
  const own = ctx.req.headers['x-request-id'];
  if (typeof own === 'string' && WELL_FORMED.test(own)) {
    ctx.state.clientRequestId = own;
    ctx.res.setHeader('x-client-request-id', own);
  }
  return next();
};

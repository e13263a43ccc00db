import type { CallContext } from '../core/call-context.ts';
import type { Principal } from '../core/principal.ts';
import { type AppContext, placeOf } from './state.ts';

/** The principal that `authenticate` left. */
export function principalOf(ctx: AppContext): Principal {
  if (ctx.state.principal === undefined) throw new Error('the route lacks its authenticate step');
  return ctx.state.principal;
}

const isTrue = (header: string | string[] | undefined): boolean => header === 'true';

/** What the core needs to know of the HTTP request; tells the caller, in headers, of the decision as soon as it is made. */
export function callContext(ctx: AppContext): CallContext {
  const { state, req, res } = ctx;
  const place = placeOf(ctx);
  return {
    requestId: state.requestId,
    clientRequestId: state.clientRequestId,
    clientIp: state.clientIp,
    signal: state.signal,
    noFallback: isTrue(req.headers['x-no-fallback']),
    noCache: isTrue(req.headers['x-no-cache']),
    room: (bytes) => place.holdAnswer(bytes),
    onDecision(decisionId, policyRevision) {
      state.decisionId = decisionId;
      res.setHeader('x-decision-id', decisionId);
      res.setHeader('x-policy-revision', policyRevision);
    },
    onCall(callId) {
      state.callId = callId;
    },
    onDropped(fields) {
      // A comment line may have gone out before, and the headers with it.
      if (!res.headersSent && fields.length > 0) res.setHeader('x-dropped-parameters', fields.join(', '));
    },
    onCacheHit() {
      res.setHeader('x-cache', 'HIT');
    },
  };
}

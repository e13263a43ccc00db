import type { IncomingHttpHeaders } from 'node:http';
import type { CallContext } from '../core/access/call-context.ts';
import type { Principal } from '../core/access/principal.ts';
import { invalidRequest } from '../domain/errors.ts';
import { type AppContext, placeOf } from './state.ts';

/** The principal that `authenticate` left. */
export function principalOf(ctx: AppContext): Principal {
  if (ctx.state.principal === undefined) throw new Error('the route lacks its authenticate step');
  return ctx.state.principal;
}

const isTrue = (header: string | string[] | undefined): boolean => header === 'true';

const META = 'x-portcullis-meta-';
const MAX_META = 16;
const MAX_META_LENGTH = 256;

/** What the caller says of the request. @throws ApiError 400 for too much */
function metaOf(headers: IncomingHttpHeaders): Readonly<Record<string, string>> {
  const given = Object.entries(headers).filter(([name]) => name.startsWith(META));
  const meta = Object.fromEntries(given.map(([name, value]) => [name.slice(META.length), String(value)]));
  const isTooLong = Object.entries(meta).some(([name, value]) => Math.max(name.length, value.length) > MAX_META_LENGTH);
  if (given.length > MAX_META || isTooLong) {
    throw invalidRequest(
      `At most ${MAX_META} headers ${META}… of at most ${MAX_META_LENGTH} characters are read.`,
      null,
    );
  }
  return meta;
}

/** What the core needs to know of the HTTP request; tells the caller, in headers, of the decision as soon as it is made. */
export function callContext(ctx: AppContext): CallContext {
  const { state, req, res } = ctx;
  const place = placeOf(ctx);
  // A stream may have begun before, and then the headers are gone.
  const tell = (name: string, value: string): void => {
    if (!res.headersSent) res.setHeader(name, value);
  };
  return {
    requestId: state.requestId,
    clientRequestId: state.clientRequestId,
    arrivedAt: state.arrivedAt,
    receivingMs: state.receivingMs,
    ...(state.tool === undefined ? {} : { tool: state.tool }),
    clientIp: state.clientIp,
    signal: state.signal,
    noFallback: isTrue(req.headers['x-no-fallback']),
    noCache: isTrue(req.headers['x-no-cache']),
    findMeta: () => metaOf(req.headers),
    room: (bytes) => place.holdAnswer(bytes),
    onDecision(decisionId, policyRevision) {
      state.decisionId = decisionId;
      tell('x-decision-id', decisionId);
      tell('x-policy-revision', policyRevision);
    },
    onDenial(reason) {
      state.reason = reason;
    },
    onCall(callId) {
      state.callId = callId;
    },
    onDropped(fields) {
      if (fields.length > 0) tell('x-dropped-parameters', fields.join(', '));
    },
    onCacheHit() {
      tell('x-cache', 'HIT');
    },
    onEnd(target, cost) {
      state.target = target;
      state.cost = cost;
    },
  };
}

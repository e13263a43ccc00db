import type { Mapping } from '../domain/model.ts';
import type { Clock } from '../domain/time.ts';
import { guessTokens, NO_USAGE, type Usage } from '../domain/usage.ts';
import type { ImageRequest } from '../generated/types.ts';
import { unknownImageField } from '../providers/request-fields.ts';
import { notTakenByProvider } from '../providers/upstream-error.ts';
import type { Authorize } from './authorize.ts';
import type { CallFacts } from './call.ts';
import type { CallContext } from './call-context.ts';
import { callMetadata } from './chat-answer.ts';
import { imageDemand } from './demand.ts';
import { type ExchangeLimits, exchangeWhole } from './exchange.ts';
import { imageAnswer, imageUsage } from './image-answer.ts';
import type { JsonText } from './json-text.ts';
import { openCall } from './open-call.ts';
import type { Principal } from './principal.ts';
import type { ReadAnswer } from './read-answer.ts';
import type { Resolve } from './resolve.ts';
import type { Target } from './target.ts';
import { permit, serveWhole, type WholeCallDeps } from './whole-call.ts';

export interface GenerateImageDeps extends WholeCallDeps {
  readonly resolve: Resolve;
  readonly authorize: Authorize;
  readonly clock: Clock;
  /** Of a request that names none. */
  readonly defaultModel: string;
}

/**
 * The one way to make images, for every door: resolve, decide, open the call, route, settle. Throws ApiError, PolicyFailure or
 * StoreUnavailable; whatever was dispatched is settled by then.
 */
export type GenerateImage = (principal: Principal, context: CallContext, request: ImageRequest) => Promise<JsonText>;

/** What no tokens are charged for has none. */
const promptUsage = ({ prompt }: ImageRequest, { prices }: Mapping): Usage =>
  prices.prompt === undefined
    ? NO_USAGE
    : { ...NO_USAGE, promptTokens: guessTokens(Buffer.byteLength(prompt)), estimated: true };

export function createGenerateImage(deps: GenerateImageDeps): GenerateImage {
  const { resolve, store, clock, defaultModel } = deps;

  async function draw(request: ImageRequest, target: Target, limits: ExchangeLimits): Promise<ReadAnswer> {
    const { mapping, provider } = target;
    const { images } = provider.adapter;
    if (images === undefined) throw notTakenByProvider(`${mapping.providerId} does not make images.`);
    const call = { request, mapping, namedFields: provider.namedFields };
    return exchangeWhole(deps, target, images, { operation: 'image', call }, limits);
  }

  return async (principal, context, request) => {
    const model = request.model ?? defaultModel;
    const { candidates, requestedProvider } = await resolve(model, 'image', principal, (_, { namedFields }) =>
      unknownImageField(request, namedFields),
    );
    const facts: CallFacts = { principal, context, action: 'image', requestedModel: model, stream: false };
    const permitted = await permit(deps, facts, candidates);
    const call = await openCall(
      store,
      facts,
      permitted,
      () => imageDemand(request),
      (mapping) => promptUsage(request, mapping),
    );
    const created = Math.floor(clock.now() / 1000);
    // What a provider leaves unreported is no tokens: where they alone would be charged, the cost is unknown.
    const { value, target, attempts, usage, cost } = await serveWhole(
      deps,
      call,
      facts,
      (each, limits) => draw(request, each, limits),
      (told) => told.usage ?? { ...NO_USAGE, images: told.images },
    );
    const metadata = callMetadata({ facts, call, requestedProvider, created }, target.mapping, value.model, attempts);
    return imageAnswer(created, value.json, imageUsage(usage, cost), metadata);
  };
}

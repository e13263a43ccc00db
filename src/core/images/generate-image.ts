import { Readable } from 'node:stream';
import type { Mapping } from '../../domain/model.ts';
import type { Clock } from '../../domain/time.ts';
import { guessTokens, NO_USAGE, type Usage } from '../../domain/usage.ts';
import type { ImageEvent, ImageRequest } from '../../generated/types.ts';
import { LongTexts } from '../../net/long-texts.ts';
import type { PartialImage } from '../../providers/wire/adapter.ts';
import { unknownImageField } from '../../providers/wire/request-fields.ts';
import { notTakenByProvider } from '../../providers/wire/upstream-error.ts';
import type { Authorize } from '../access/authorize.ts';
import type { CallContext } from '../access/call-context.ts';
import type { Principal } from '../access/principal.ts';
import type { CallFacts } from '../call/call.ts';
import { type ExchangeLimits, endpointOf, exchange, exchangeWhole } from '../call/exchange.ts';
import { openCall } from '../call/open-call.ts';
import { madeImages, type ReadAnswer } from '../call/read-answer.ts';
import { permit, serveWhole, type WholeCallDeps } from '../call/whole-call.ts';
import { callMetadata } from '../chat/chat-answer.ts';
import type { Resolve } from '../models/resolve.ts';
import type { Target } from '../models/target.ts';
import { imageDemand } from '../price/demand.ts';
import {
  completedEvents,
  type ImageEnd,
  imageAnswer,
  imageUsage,
  partialEvent,
  type WrittenEvent,
  type WrittenImages,
} from './image-answer.ts';

export interface GenerateImageDeps extends WholeCallDeps {
  readonly resolve: Resolve;
  readonly authorize: Authorize;
  readonly clock: Clock;
  /** Of a request that names none. */
  readonly defaultModel: string;
}

/** A whole answer, or a stream; nothing of a stream is asked of the upstream before its first event is asked for. */
type ImageOutcome =
  | { readonly kind: 'answer'; readonly answer: WrittenImages }
  | { readonly kind: 'stream'; readonly events: AsyncIterable<ImageEvent | WrittenEvent> };

/**
 * The one way to make images, for every door: resolve, decide, open the call, route, settle. Throws ApiError, PolicyFailure or
 * StoreUnavailable, a stream to its reader; whatever was dispatched is settled by then.
 */
export type GenerateImage = (
  principal: Principal,
  context: CallContext,
  request: ImageRequest,
) => Promise<ImageOutcome>;

/** What no tokens are charged for has none. */
const promptUsage = ({ prompt }: ImageRequest, { prices }: Mapping): Usage =>
  prices.prompt === undefined
    ? NO_USAGE
    : { ...NO_USAGE, promptTokens: guessTokens(Buffer.byteLength(prompt)), estimated: true };

export function createGenerateImage(deps: GenerateImageDeps): GenerateImage {
  const { resolve, store, clock, defaultModel } = deps;

  async function draw(
    request: ImageRequest,
    target: Target,
    limits: ExchangeLimits,
    view: View | undefined,
  ): Promise<ReadAnswer> {
    const { mapping, provider, credential } = target;
    const { images } = provider.adapter;
    if (images === undefined) throw notTakenByProvider(`${mapping.providerId} does not make images.`);
    const call = { request, mapping, namedFields: provider.namedFields };
    const { partials } = images;
    if (view === undefined || partials?.areGiven(call) !== true) {
      return exchangeWhole(deps, target, images, { operation: 'image', call }, limits);
    }
    const outbound = images.buildRequest(call, endpointOf(target));
    const { signal } = view;
    const response = await exchange(deps.transport, target, outbound, 'streamed', { ...limits, signal });
    view.longTexts = response.longTexts;
    return madeImages(await partials.parseStream(response, (partial) => view.show(partial), credential.secret), true);
  }

  return async (principal, context, request) => {
    const model = request.model ?? defaultModel;
    const { candidates, requestedProvider } = await resolve(model, 'image', principal, (_, { namedFields }) =>
      unknownImageField(request, namedFields),
    );
    const stream = request.stream === true;
    const facts: CallFacts = { principal, context, action: 'image', requestedModel: model, stream };
    const permitted = await permit(deps, facts, candidates);
    const call = await openCall(
      store,
      facts,
      permitted,
      () => imageDemand(request),
      (mapping) => promptUsage(request, mapping),
    );
    const created = Math.floor(clock.now() / 1000);
    const dropped = ({ mapping, provider: { adapter, namedFields } }: Target): readonly string[] =>
      adapter.images?.dropped({ request, mapping, namedFields }) ?? [];

    async function serve(view?: View): Promise<Made> {
      // What a provider leaves unreported is no tokens: where they alone would be charged, the cost is unknown.
      const { value, target, attempts, usage, cost } = await serveWhole(
        deps,
        call,
        facts,
        (each, limits) => draw(request, each, limits, view),
        (made) => made.usage ?? { ...NO_USAGE, images: made.images },
        { isShown: () => view?.isShown === true, dropped },
      );
      context.onDropped(dropped(target));
      const metadata = callMetadata({ facts, call, requestedProvider, created }, target.mapping, value.model, attempts);
      return { json: value.json, end: { usage: imageUsage(usage, cost), metadata } };
    }

    if (stream) return { kind: 'stream', events: imageEvents(created, context.signal, serve) };
    const { json, end } = await serve();
    return { kind: 'answer', answer: imageAnswer(created, json[0], end) };
  };
}

/** What a served call tells its caller. */
interface Made {
  readonly json: ReadAnswer['json'];
  readonly end: ImageEnd;
}

/**
 * What a caller sees of an image while it is made. From the first draft on the image is paid for: the upstream is read to its
 * end, which tells what it cost, even when the caller leaves.
 */
class View {
  /** Of what the upstream streams. */
  longTexts = new LongTexts();
  readonly #onPartial: (partial: PartialImage) => void;
  readonly #leaving = new AbortController();
  #isShown = false;

  constructor(left: AbortSignal, onPartial: (partial: PartialImage) => void) {
    this.#onPartial = onPartial;
    const leave = (): void => {
      if (!this.#isShown) this.#leaving.abort(left.reason);
    };
    if (left.aborted) leave();
    left.addEventListener('abort', leave, { once: true });
  }

  get isShown(): boolean {
    return this.#isShown;
  }

  /** Aborted when the caller has left before anything was shown. */
  get signal(): AbortSignal {
    return this.#leaving.signal;
  }

  show(partial: PartialImage): void {
    this.#isShown = true;
    this.#onPartial(partial);
  }
}

/** A reader who leaves is waited for until the call is settled. */
async function* imageEvents(
  created: number,
  left: AbortSignal,
  serve: (view: View) => Promise<Made>,
): AsyncGenerator<ImageEvent | WrittenEvent, void, undefined> {
  // It holds no more than the largest answer that the transport takes.
  const partials = new Readable({ objectMode: true, read() {} });
  const view = new View(left, (partial) => partials.push(partialEvent(created, partial, view.longTexts)));
  const served = serve(view);
  const ended = served.then(
    () => partials.push(null),
    (error) => partials.destroy(error),
  );
  try {
    yield* partials;
    const { json, end } = await served;
    yield* completedEvents(created, json, end, view.longTexts);
  } finally {
    await ended;
  }
}

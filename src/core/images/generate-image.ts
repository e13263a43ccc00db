import { Readable } from 'node:stream';
import type { Mapping } from '../../domain/model.ts';
import type { Clock } from '../../domain/time.ts';
import { guessTokens, NO_USAGE, type Usage } from '../../domain/usage.ts';
import type { ImageEvent, ImageRequest } from '../../generated/types.ts';
import { LongTexts } from '../../net/long-texts.ts';
import type { PartialImage } from '../../providers/wire/adapter.ts';
import { unknownImageField } from '../../providers/wire/request-fields.ts';
import { notTakenByProvider } from '../../providers/wire/upstream-error.ts';
import type { AuthorizeDeps } from '../access/authorize.ts';
import type { CallContext } from '../access/call-context.ts';
import type { Principal } from '../access/principal.ts';
import { type Call, type CallFacts, callMetadata } from '../call/call.ts';
import { type ExchangeDeps, type ExchangeLimits, endpointOf, exchange, exchangeWhole } from '../call/exchange.ts';
import { openCall, permit } from '../call/open-call.ts';
import { madeImages, type ReadAnswer } from '../call/read-answer.ts';
import { type RouteDeps, serveWhole } from '../call/route.ts';
import type { Target } from '../models/reach.ts';
import { type ResolveDeps, resolve } from '../models/resolve.ts';
import { type Demand, imageDemand } from '../price/demand.ts';
import {
  completedEvents,
  type ImageEnd,
  imageAnswer,
  imageUsage,
  partialEvent,
  type WrittenEvent,
  type WrittenImages,
} from './image-answer.ts';

export interface GenerateImageDeps extends ExchangeDeps, RouteDeps, ResolveDeps, AuthorizeDeps {
  readonly clock: Clock;
  /** Of a request that names none. */
  readonly defaultImageModel: string;
}

/** A whole answer, or a stream; nothing of a stream is asked of the upstream before its first event is asked for. */
type ImageOutcome =
  | { readonly kind: 'answer'; readonly answer: WrittenImages }
  | { readonly kind: 'stream'; readonly events: AsyncIterable<ImageEvent | WrittenEvent> };

/**
 * The one way to make images, for every door: resolve, decide, open the call, route, settle. Throws ApiError, PolicyFailure or
 * StoreUnavailable, a stream to its reader; whatever was dispatched is settled by then.
 */
export async function generateImage(
  deps: GenerateImageDeps,
  principal: Principal,
  context: CallContext,
  request: ImageRequest,
): Promise<ImageOutcome> {
  const requestedModel = request.model ?? deps.defaultImageModel;
  const { candidates, requestedProvider, order, isSandboxFree } = await resolve(
    deps,
    requestedModel,
    'image',
    { principal, clientIp: context.clientIp },
    (_, { namedFields }) => unknownImageField(request, namedFields),
  );
  const stream = request.stream === true;
  const facts: CallFacts = {
    principal,
    context,
    action: 'image',
    requestedModel,
    requestedProvider,
    order,
    isSandboxFree,
    stream,
  };
  const findDemand = (): Demand => imageDemand(request);
  const permitted = await permit(deps, facts, candidates, () => ({ demand: findDemand(), toolNames: [] }));
  const call = await openCall(deps, facts, permitted, findDemand, (mapping) => promptUsage(request, mapping));
  const created = Math.floor(deps.clock.now() / 1000);
  if (stream) {
    const serve = (view: View): Promise<Made> => serveImages(deps, call, request, view);
    return { kind: 'stream', events: imageEvents(created, context.signal, serve) };
  }
  const { json, end } = await serveImages(deps, call, request);
  return { kind: 'answer', answer: imageAnswer(created, json[0], end) };
}

/** What no tokens are charged for has none. */
const promptUsage = ({ prompt }: ImageRequest, { prices }: Mapping): Usage =>
  prices.prompt === undefined
    ? NO_USAGE
    : { ...NO_USAGE, promptTokens: guessTokens(Buffer.byteLength(prompt)), estimated: true };

/** Routes an open call to its images and settles it. @param view where a stream shows them; absent: not before they are made */
async function serveImages(deps: GenerateImageDeps, call: Call, request: ImageRequest, view?: View): Promise<Made> {
  const dropped = ({ mapping, provider: { adapter, namedFields } }: Target): readonly string[] =>
    adapter.images?.dropped({ request, mapping, namedFields }) ?? [];
  const { value, target, usage, cost } = await serveWhole(
    deps,
    call,
    async (each, limits) => {
      const made = await draw(deps, request, each, limits, view);
      // What a provider leaves unreported is no tokens: where they alone would be charged, the cost is unknown.
      return { value: made, usage: made.usage ?? { ...NO_USAGE, images: made.images } };
    },
    { isShown: () => view?.isShown === true, dropped },
  );
  call.facts.context.onDropped(dropped(target));
  const metadata = callMetadata(call, target.mapping, value.model, call.attempts);
  return { json: value.json, end: { usage: imageUsage(usage, cost), metadata } };
}

/** One attempt. */
async function draw(
  deps: ExchangeDeps,
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

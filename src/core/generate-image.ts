import { Readable } from 'node:stream';
import type { Mapping } from '../domain/model.ts';
import { guessTokens, NO_USAGE, type Usage } from '../domain/usage.ts';
import type { CallMetadata, ImageAnswer, ImageEvent, ImageRequest, ImageUsage } from '../generated/types.ts';
import { LongTexts } from '../net/event-stream.ts';
import type { PartialImage } from '../providers/wire/adapter.ts';
import { unknownImageField } from '../providers/wire/fields.ts';
import { notTakenByProvider } from '../providers/wire/upstream-error.ts';
import type { CallContext, Principal } from './authorize.ts';
import { type Call, type CallFacts, callMetadata } from './call.ts';
import type { CoreContext } from './core-context.ts';
import { type Cost, costFields } from './cost.ts';
import type { Demand } from './operations.ts';
import { madeImages, type ProviderJson, type ReadAnswer, WrittenAnswer } from './provider-answer.ts';
import type { Target } from './reach.ts';
import { resolve } from './resolve.ts';
import { openCall, permit, serveWhole } from './route.ts';
import { type ExchangeLimits, endpointOf, exchange, exchangeWhole } from './target-exchange.ts';
import { imageDemand } from './worst-case.ts';

/** A whole answer, or a stream; nothing of a stream is asked of the upstream before its first event is asked for. */
type ImageOutcome =
  | { readonly kind: 'answer'; readonly answer: WrittenImages }
  | { readonly kind: 'stream'; readonly events: AsyncIterable<ImageEvent | WrittenEvent> };

/**
 * The one way to make images, for every door: resolve, decide, open the call, route, settle. Throws ApiError, PolicyFailure or
 * StoreUnavailable, a stream to its reader; whatever was dispatched is settled by then.
 */
export async function generateImage(
  app: CoreContext,
  principal: Principal,
  context: CallContext,
  request: ImageRequest,
): Promise<ImageOutcome> {
  const requestedModel = request.model ?? app.defaultImageModel;
  const { candidates, requestedProvider, order, isSandboxFree } = await resolve(
    app,
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
  const permitted = await permit(app, facts, candidates, () => ({ demand: findDemand(), toolNames: [] }));
  const call = await openCall(app, facts, permitted, findDemand, (mapping) => promptUsage(request, mapping));
  const created = Math.floor(app.clock.now() / 1000);
  if (stream) {
    const serve = (view: ImageProgress): Promise<ImageResult> => serveImages(app, call, request, view);
    return { kind: 'stream', events: imageEvents(created, context.signal, serve) };
  }
  const { json, end } = await serveImages(app, call, request);
  return { kind: 'answer', answer: imageAnswer(created, json[0], end) };
}

/** Usage of the prompt: none where its tokens have no price. */
const promptUsage = ({ prompt }: ImageRequest, { prices }: Mapping): Usage =>
  prices.prompt === undefined
    ? NO_USAGE
    : { ...NO_USAGE, promptTokens: guessTokens(Buffer.byteLength(prompt)), estimated: true };

/** Routes an open call to its images and settles it. @param view where a stream shows them; absent: not before they are made */
async function serveImages(
  app: CoreContext,
  call: Call,
  request: ImageRequest,
  view?: ImageProgress,
): Promise<ImageResult> {
  const dropped = ({ mapping, provider: { adapter, namedFields } }: Target): readonly string[] =>
    adapter.images?.dropped({ request, mapping, namedFields }) ?? [];
  const { value, target, usage, cost } = await serveWhole(
    app,
    call,
    async (each, limits) => {
      const made = await draw(app, request, each, limits, view);
      // Unreported tokens count as zero: if only tokens would be charged, the cost is unknown.
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
  app: CoreContext,
  request: ImageRequest,
  target: Target,
  limits: ExchangeLimits,
  view: ImageProgress | undefined,
): Promise<ReadAnswer> {
  const { mapping, provider, credential } = target;
  const { images } = provider.adapter;
  if (images === undefined) throw notTakenByProvider(`${mapping.providerId} does not make images.`);
  const call = { request, mapping, namedFields: provider.namedFields };
  const { partials } = images;
  if (view === undefined || partials?.areGiven(call) !== true) {
    return exchangeWhole(app, target, images, { operation: 'image', call }, limits);
  }
  const outbound = images.buildRequest(call, endpointOf(target));
  const { signal } = view;
  const response = await exchange(app.transport, target, outbound, 'streamed', { ...limits, signal });
  view.longTexts = response.longTexts;
  return madeImages(await partials.parseStream(response, (partial) => view.show(partial), credential.secret), true);
}

/** A served call's result for its caller. */
interface ImageResult {
  readonly json: ReadAnswer['json'];
  readonly end: ImageEnd;
}

/**
 * An image as its caller sees it while it is made. From the first draft on, the image is paid for: the upstream is read to its
 * end, which reports the cost, even when the caller leaves.
 */
class ImageProgress {
  /** Long texts of the upstream's stream. */
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
  serve: (view: ImageProgress) => Promise<ImageResult>,
): AsyncGenerator<ImageEvent | WrittenEvent, void, undefined> {
  // It holds no more than the largest answer that the transport takes.
  const partials = new Readable({ objectMode: true, read() {} });
  const view = new ImageProgress(left, (partial) => partials.push(partialEvent(created, partial, view.longTexts)));
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

/** Its `data`, and fields that nobody here knows, are the provider's. */
type WrittenImages = WrittenAnswer<Omit<ImageAnswer, 'data'>>;

/** An event as above, with its image. */
type WrittenEvent = WrittenAnswer<ImageEvent>;

/** Facts that are known when the call is settled. */
interface ImageEnd {
  readonly usage: ImageUsage;
  readonly metadata: CallMetadata;
}

/** The answer of an image call. */
const imageAnswer = (created: number, upstream: ProviderJson, end: ImageEnd): WrittenImages =>
  new WrittenAnswer({ created, ...end }, upstream);

/** The answer's `usage`: by OpenAI's names for image calls and by those of chats, with its cost. */
function imageUsage(usage: Usage, cost: Cost): ImageUsage {
  const { promptTokens, completionTokens, promptImageTokens } = usage;
  return {
    input_tokens: promptTokens,
    input_tokens_details: { text_tokens: promptTokens - promptImageTokens, image_tokens: promptImageTokens },
    output_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    ...costFields(usage, cost),
  };
}

/** The event that shows a draft of an image. */
function partialEvent(created: number, { base64, position, fields }: PartialImage, longTexts: LongTexts): WrittenEvent {
  const event: ImageEvent = {
    ...fields,
    type: 'image_generation.partial_image',
    created_at: created,
    b64_json: base64,
    partial_image_index: position,
  };
  return new WrittenAnswer(event, undefined, longTexts);
}

/** The events of a whole answer: one for each image, the last with the usage of all. */
const completedEvents = (
  created: number,
  images: readonly ProviderJson[],
  end: ImageEnd,
  longTexts: LongTexts,
): WrittenEvent[] =>
  images.map((image, position) => {
    const event = { type: 'image_generation.completed', created_at: created } as const;
    return new WrittenAnswer(position === images.length - 1 ? { ...event, ...end } : event, image, longTexts);
  });

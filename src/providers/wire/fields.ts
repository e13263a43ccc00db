import chatSchema from '../../../schemas/api/chat-request.json' with { type: 'json' };
import imageSchema from '../../../schemas/api/image-request.json' with { type: 'json' };
import type { Mapping } from '../../domain/model.ts';
import type { Usage } from '../../domain/usage.ts';
import type { ChatRequest, ImageRequest } from '../../generated/types.ts';
import { exceededBound, type JsonBounds } from '../../lib/json.ts';
import { entryOf, plainText } from '../../lib/text.ts';
import type { StreamEvent } from '../../net/event-stream.ts';
import type { ChatCall, Unsupported } from './adapter.ts';
import { notTakenByProvider, UpstreamError, unreadable } from './upstream-error.ts';

/**
 * More than any answer holds: a depth that is far from where writing it down again would overflow the stack, and the likeliest
 * twenty tokens at each of 6,000 places.
 */
export const ANSWER_BOUNDS: JsonBounds = { depth: 1000, values: 1_000_000, fields: 10_000 };

/** Longest text that is not checked: a level takes two characters and a field four, so it exceeds no bound that matters. */
const SHORT = 2 * ANSWER_BOUNDS.depth;

/** A JSON object of which nothing is known yet. */
export type Fields = Readonly<Record<string, unknown>>;

/** True for a JSON object. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const NOTHING: Fields = {};

/** A JSON object as it is; an empty one for anything else. */
export const record = (value: unknown): Fields => (isRecord(value) ? value : NOTHING);

/** A count: a whole number that is not negative; anything else was not reported. */
export const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;

/** Longer than any model's id. */
const MAX_MODEL_LENGTH = 512;

/** An upstream's own id of a model: it is kept, and told with every answer. Undefined for anything that is none. */
export const modelId = (value: unknown): string | undefined =>
  typeof value === 'string' && value.length <= MAX_MODEL_LENGTH ? plainText(value) : undefined;

/** The parsed text of an upstream; undefined when it is no JSON, or exceeds the bounds of answers. */
export function parseJson(text: string): unknown {
  if (text.length > SHORT && exceededBound(Buffer.from(text), ANSWER_BOUNDS) !== undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** JSON of an event of a stream; undefined for anything else. */
export const eventJson = (event: StreamEvent): unknown =>
  event.data === undefined ? event.json : parseJson(event.data);

/** Reads an answer. Where that fails, the error carries what the provider reported for it. @throws UpstreamError */
export function paidFor<T>(usage: () => Usage | undefined, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const failure = error instanceof UpstreamError ? error : unreadable(error);
    throw failure.withUsage(usage());
  }
}

/**
 * Whether a provider's own field may hold a value. It is checked in depth: nothing that the table does not know may travel
 * inside.
 */
export type Takes = (value: unknown) => boolean;

/** Fields of a chat request that a provider has and OpenAI has not. None of them names a model or raises what is charged. */
export type Extensions = Readonly<Record<string, Takes>>;

/** A text, a number or a boolean. */
export const single: Takes = (value) => value === null || typeof value !== 'object';

/** Value that only templates and schemas read. */
export const anything: Takes = () => true;

export const listOf =
  (takes: Takes): Takes =>
  (value) =>
    Array.isArray(value) && value.every(takes);

export const objectOf =
  (fields: Extensions): Takes =>
  (value) =>
    isRecord(value) && Object.entries(value).every(([name, inner]) => holds(fields, name, inner));

/** Null counts as absent. */
function holds(fields: Extensions, name: string, value: unknown): boolean {
  const fieldTakes = entryOf(fields, name);
  return fieldTakes !== undefined && (value === null || fieldTakes(value));
}

const OPENAI_FIELDS: ReadonlySet<string> = new Set(Object.keys(chatSchema.properties));
const IMAGE_FIELDS: ReadonlySet<string> = new Set(Object.keys(imageSchema.properties));

/** Which fields of a chat request go to a provider: OpenAI's, its own by `extensions`, and those that the operator has named. */
interface TakenFields {
  readonly extensions: Extensions;
  readonly named: ReadonlySet<string>;
}

const takes = ({ extensions, named }: TakenFields, name: string, value: unknown): boolean =>
  OPENAI_FIELDS.has(name) || named.has(name) || holds(extensions, name, value);

/** No field, or no tool. */
export const NONE: ReadonlySet<string> = new Set();

/** The first field that the provider does not take. One that is null counts as absent, here as everywhere. */
function unknownField(request: object, fields: TakenFields): Unsupported | undefined {
  for (const [name, value] of Object.entries(request)) {
    if (value === null || takes(fields, name, value)) continue;
    if (!Object.hasOwn(fields.extensions, name)) return unknown(name);
    return { param: pointer(name), message: `\`${name}\` holds something that the provider does not take.` };
  }
  return undefined;
}

/** OpenAI's fields of an image request that are refused, each with the reason. */
const REFUSED_IMAGE_FIELDS: ReadonlyMap<string, string> = new Map([
  ['frame_count', '`frame_count` is not taken: each frame is charged, and its price is not known.'],
  ['prompt_rewriter', '`prompt_rewriter` is not taken: it names another model, which no rule would judge.'],
  ['svg', '`svg` is not taken: it names another model, which no rule would judge, at a price that is not known.'],
]);

/** The first field of an image request that is neither OpenAI's nor one that the operator has named. */
export function unknownImageField(request: ImageRequest, named: ReadonlySet<string>): Unsupported | undefined {
  for (const [name, value] of Object.entries(request)) {
    if (value === null || IMAGE_FIELDS.has(name) || named.has(name)) continue;
    const message = REFUSED_IMAGE_FIELDS.get(name);
    return message === undefined ? unknown(name) : { param: pointer(name), message };
  }
  return undefined;
}

/** An image request with the fields that the provider takes, and no other: one that is null is left out, whatever its name. */
export function takenImageFields(
  request: ImageRequest,
  named: ReadonlySet<string> = NONE,
): Omit<ImageRequest, 'prompt'> {
  return Object.fromEntries(
    Object.entries(request).filter(([name, value]) => value !== null && (IMAGE_FIELDS.has(name) || named.has(name))),
  );
}

const unknown = (name: string): Unsupported => ({
  param: pointer(name),
  message: `\`${name}\` is not a field that the provider takes.`,
});

/** The request with the fields that the provider takes, and no other. */
export function takenFields(request: object, fields: TakenFields): Record<string, unknown> {
  return Object.fromEntries(Object.entries(request).filter(([name, value]) => takes(fields, name, value)));
}

/** The fields that the operator has named, for a provider whose body is not the caller's. */
export function namedFields(request: object, named: ReadonlySet<string> = NONE): Record<string, unknown> {
  if (named.size === 0) return {};
  return Object.fromEntries(Object.entries(request).filter(([name]) => named.has(name)));
}

const pointer = (name: string): string => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;

/** Fields of a chat request that a wire format, or a dialect of it, takes beyond OpenAI's. */
export interface RequestTable {
  readonly extensions: Extensions;
  /** Types of tools that search the web: they call no other model, and each search has the mapping's `web_search` price. */
  readonly searchTools?: ReadonlySet<string>;
  /** OpenAI's fields that it does not honour for a request: it refuses them, or has no word for them. */
  cannot(call: FitCall): readonly string[];
  /** Further requests that it cannot take, by its own rules. */
  refuses?(call: FitCall): Unsupported | undefined;
}

/** Parts of a call that decide whether a provider fits it. */
export type FitCall = Omit<ChatCall, 'maxOutputTokens'>;

/** Part of a request that a provider cannot take, or would charge for at prices that the gateway does not know. */
export function unsupportedBy(
  call: FitCall,
  { extensions, searchTools = NONE, cannot, refuses }: RequestTable,
): Unsupported | undefined {
  const { request, mapping, namedFields: named = NONE } = call;
  return (
    unknownField(request, { extensions, named }) ??
    unknownTool(request, searchTools) ??
    unlistedTier(request) ??
    unpricedSearch(request, searchTools, mapping) ??
    changed(request, cannot(call)) ??
    refuses?.(call)
  );
}

/** Web searches for an answer, unless the caller allows more. Where the provider takes a maximum it gets this one. */
export const MAX_SEARCHES = 10;

/** The words that providers have for their listed prices, or for less. Other tiers, such as `priority`, cost a multiple. */
const LISTED_TIERS: ReadonlySet<string> = new Set([
  '',
  'auto',
  'default',
  'flex',
  'on_demand',
  'standard',
  'standard_only',
]);

/** Neither rules on prices nor spend caps could hold for a tier whose prices are not known. */
function unlistedTier({ service_tier: tier }: ChatRequest): Unsupported | undefined {
  if (LISTED_TIERS.has(tier ?? '')) return undefined;
  const message = 'The prices of this `service_tier` are not known: use `auto`, `default` or `flex`.';
  return { param: '/service_tier', message };
}

/** Fields of tools that search: a function has none of them. */
const SEARCH_FIELDS = ['name', 'max_uses', 'allowed_domains', 'blocked_domains', 'user_location'] as const;

/** A tool that runs at the provider and that no table knows may call other models and cost anything. */
function unknownTool({ tools }: ChatRequest, searchTools: ReadonlySet<string>): Unsupported | undefined {
  for (const [position, tool] of (tools ?? []).entries()) {
    const { type } = tool;
    if (searchTools.has(type)) continue;
    if (type !== 'function' && type !== 'custom') {
      const message =
        'The provider takes tools of type `function` or `custom`: what a tool of its own costs is not known.';
      return { param: `/tools/${position}/type`, message };
    }
    const name = SEARCH_FIELDS.find((field) => tool[field] !== undefined);
    if (name === undefined) continue;
    return { param: `/tools/${position}/${name}`, message: `A tool of type \`${type}\` has no \`${name}\`.` };
  }
  return undefined;
}

function unpricedSearch(
  { tools, web_search_options: options }: ChatRequest,
  searchTools: ReadonlySet<string>,
  { prices, tiers = [] }: Mapping,
): Unsupported | undefined {
  const tool = (tools ?? []).findIndex(({ type }) => searchTools.has(type));
  if (tool === -1 && (options === undefined || options === null)) return undefined;
  if ([prices, ...tiers.map((tier) => tier.prices)].every((list) => list.web_search !== undefined)) return undefined;
  const param = tool === -1 ? '/web_search_options' : `/tools/${tool}/type`;
  return { param, message: 'The price of a web search at this provider is not known.' };
}

/** Fields that change what comes back. All others only tune the answer, or label the request. */
const CHANGING: ReadonlySet<string> = new Set([
  'audio',
  'function_call',
  'functions',
  'logprobs',
  'modalities',
  'moderation',
  'n',
  'response_format',
  'stop',
  'tool_choice',
  'tools',
  'top_logprobs',
  'web_search_options',
]);

/** Values that ask for what happens anyway. */
const AT_REST: Readonly<Record<string, unknown>> = {
  frequency_penalty: 0,
  logprobs: false,
  n: 1,
  parallel_tool_calls: true,
  presence_penalty: 0,
  store: false,
  top_logprobs: 0,
};

/** A field that is at rest, such as `logprobs: false` or `n: 1`, can be left out without loss. */
function asksForSomething(field: string, value: unknown): boolean {
  if (value === undefined || value === null || value === '' || value === entryOf(AT_REST, field)) return false;
  if (field === 'modalities') return Array.isArray(value) && value.some((modality) => modality !== 'text');
  if (field === 'service_tier') return value === 'flex';
  return typeof value !== 'object' || Object.keys(value).length > 0;
}

/** The first field that the answer depends on and that the provider does not honour. */
function changed(request: ChatRequest, cannot: readonly string[]): Unsupported | undefined {
  const fields = record(request);
  const field = cannot.find((name) => CHANGING.has(name) && asksForSomething(name, entryOf(fields, name)));
  return field === undefined ? undefined : { param: `/${field}`, message: `The provider does not take \`${field}\`.` };
}

/** Ways to choose a tool that have a word in every wire format but OpenAI's too. */
const CHOICES: ReadonlySet<unknown> = new Set([undefined, 'auto', 'none', 'required', 'function', 'allowed_tools']);

const FORMATS: ReadonlySet<unknown> = new Set([undefined, 'text', 'json_object', 'json_schema']);

/**
 * Part of a request that only providers with OpenAI's wire format can take: custom tools, and other choices of tools and forms
 * of an answer.
 */
export function openAiOnly({
  tools,
  tool_choice: choice,
  response_format: format,
}: ChatRequest): Unsupported | undefined {
  const custom = (tools ?? []).findIndex(({ type }) => type === 'custom');
  if (custom !== -1)
    return { param: `/tools/${custom}/type`, message: 'The provider takes no tools of type `custom`.' };
  const wanted = typeof choice === 'string' ? choice : choice?.type;
  if (!CHOICES.has(wanted)) return { param: '/tool_choice', message: 'The provider does not take this `tool_choice`.' };
  return FORMATS.has(format?.type)
    ? undefined
    : { param: '/response_format', message: 'The provider does not take this `response_format`.' };
}

/** The fields that only tune or label, and that the provider does not honour: they are left out, and named to the caller. */
export function droppedBy(call: FitCall, { cannot }: RequestTable): readonly string[] {
  const fields = record(call.request);
  return cannot(call).filter((name) => !CHANGING.has(name) && asksForSomething(name, entryOf(fields, name)));
}

/** The ratios that every Gemini image model documents. */
const RATIOS = ['1:1', '2:3', '3:2', '3:4', '4:3', '4:5', '5:4', '9:16', '16:9', '21:9'] as const;

const SIZE = /^(\d{1,5})x(\d{1,5})$/;

const ratioOf = (text: string): number => {
  const [width, height] = text.split(':');
  return Number(width) / Number(height);
};

/** The documented ratio nearest to a size in pixels. @throws UpstreamError for text that is no size */
function nearestRatio(size: string): string {
  const [, width, height] = SIZE.exec(size) ?? [];
  const wanted = Math.log(Number(width) / Number(height));
  if (!Number.isFinite(wanted)) throw notTakenByProvider('The size is not a width and a height in pixels.');
  const distance = (ratio: string): number => Math.abs(Math.log(ratioOf(ratio)) - wanted);
  return RATIOS.reduce<string>((nearest, ratio) => (distance(ratio) < distance(nearest) ? ratio : nearest), '1:1');
}

/** Options that models drawing by a ratio choose themselves, with the values that they use anyway. */
const THEIR_OWN: Readonly<Record<string, unknown>> = {
  background: 'auto',
  complexity: undefined,
  frame_duration_ms: undefined,
  moderation: 'auto',
  output_compression: 100,
  output_format: 'png',
  quality: 'auto',
  safety_identifier: undefined,
  size: 'auto',
  style: undefined,
};

/** The fields of a request that a model which draws by a ratio leaves out; of a size it takes the nearest ratio. */
export function droppedForRatio(request: ImageRequest): readonly string[] {
  const given = new Map<string, unknown>(Object.entries(request));
  return Object.entries(THEIR_OWN).flatMap(([name, usual]) => {
    const value = given.get(name) ?? undefined;
    return value === undefined || value === usual ? [] : [name];
  });
}

/**
 * The aspect ratio that a request asks for, of a model that knows no sizes: a size becomes the nearest one. Undefined when it
 * asks for neither. @throws UpstreamError `rejected` for text that is no size
 */
export function aspectRatio({ aspect_ratio: ratio, size }: ImageRequest): string | undefined {
  if (typeof ratio === 'string') return ratio;
  return typeof size === 'string' && size !== 'auto' ? nearestRatio(size) : undefined;
}

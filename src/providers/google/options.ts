import { entryOf } from '../../lib/text.ts';
import type { Adapter, Unsupported } from '../wire/adapter.ts';
import { isRecord, record } from '../wire/json.ts';
import {
  droppedBy,
  type Extensions,
  type FitCall,
  listOf,
  objectOf,
  openAiOnly,
  type RequestTable,
  single,
  unsupportedBy,
} from '../wire/request-fields.ts';
import { formsAnswersWithTools } from './model.ts';

type Fields = Readonly<Record<string, unknown>>;

const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Fields of Google's own that a caller may set, in either spelling; Google reads both. */
const inBothSpellings = (...names: string[]) => names.map((name) => ({ name, snake: snakeCase(name) }));
const TOP_LEVEL = inBothSpellings('safetySettings', 'cachedContent');
const GENERATION = inBothSpellings('thinkingConfig', 'imageConfig', 'mediaResolution');

/** Each field under both of its spellings. */
const bothSpellings = (fields: Extensions): Extensions =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, takes]) => [
      [name, takes],
      [snakeCase(name), takes],
    ]),
  );

const BODY = bothSpellings({
  safetySettings: listOf(objectOf({ category: single, threshold: single, method: single })),
  cachedContent: single,
});

const GOOGLE = objectOf({
  ...BODY,
  ...bothSpellings({
    thinkingConfig: objectOf(bothSpellings({ thinkingBudget: single, thinkingLevel: single, includeThoughts: single })),
    imageConfig: objectOf(bothSpellings({ aspectRatio: single, imageSize: single })),
    mediaResolution: single,
  }),
});

const EXTENSIONS: Extensions = { ...BODY, top_k: single, google: GOOGLE, extra_body: objectOf({ google: GOOGLE }) };

/** What Gemini has no word for. */
const ABSENT = [
  'audio',
  'function_call',
  'functions',
  'logit_bias',
  'metadata',
  'moderation',
  'parallel_tool_calls',
  'prediction',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'safety_identifier',
  'service_tier',
  'store',
  'user',
  'verbosity',
];

/** Google's limit. */
const MAX_STOPS = 5;

function refuses({ request, mapping }: FitCall): Unsupported | undefined {
  const { tools, stop, modalities, response_format: format } = request;
  if (Array.isArray(stop) && stop.length > MAX_STOPS) {
    return { param: '/stop', message: `The provider takes at most ${MAX_STOPS} stop texts.` };
  }
  if (modalities?.some((modality) => modality !== 'text' && modality !== 'image') === true) {
    return { param: '/modalities', message: 'The provider answers with text and images only.' };
  }
  if (format?.type === 'json_schema' && (tools ?? []).length > 0 && !formsAnswersWithTools(mapping.externalId)) {
    return { param: '/response_format', message: 'The model does not take tools and a schema for its answer at once.' };
  }
  return openAiOnly(request);
}

const TABLE: RequestTable = { extensions: EXTENSIONS, cannot: () => ABSENT, refuses };

/** What of a request Gemini cannot take. */
export const unsupported: Adapter['unsupported'] = (call) => unsupportedBy(call, TABLE);

export const dropped: Adapter['dropped'] = (call) => droppedBy(call, TABLE);

export interface GoogleOptions {
  /** For the body. */
  readonly body: Fields;
  /** For its `generationConfig`; they win over what other fields of the request ask for. */
  readonly generation: Fields;
}

type Names = typeof TOP_LEVEL;

/** What the first source that sets a field says; undefined: none does. Each call with a limit asks, so nothing is made. */
function chosen({ name, snake }: Names[number], sources: readonly Fields[]): unknown {
  for (const source of sources) {
    const value = entryOf(source, name) ?? entryOf(source, snake);
    if (value !== undefined && value !== null) return value;
  }
  return undefined;
}

function pick(names: Names, sources: readonly Fields[]): Fields {
  const picked: [name: string, value: unknown][] = [];
  for (const each of names) {
    const value = chosen(each, sources);
    if (value !== undefined) picked.push([each.name, value]);
  }
  return Object.fromEntries(picked);
}

/**
 * What a request says in Google's own words: in an object `google`, as Google's OpenAI-compatible endpoint has it, also inside
 * `extra_body`; `safetySettings` and `cachedContent` stand on their own as well. A cache belongs to the account that made it; whose
 * credential the call goes with is not known here, so that its name is passed on with the service's too.
 */
export function googleOptions(request: object): GoogleOptions {
  const fields = record(request);
  const own = [fields.google, record(fields.extra_body).google].filter(isRecord);
  return { body: pick(TOP_LEVEL, [...own, fields]), generation: pick(GENERATION, own) };
}

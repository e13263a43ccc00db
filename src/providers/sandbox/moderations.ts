import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { ModerationRequest, ModerationResult } from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import { parseJson } from '../wire/fields.ts';
import { MODERATION_MODEL } from './models.ts';
import { faultIn, sendError, sendFault, sendJson } from './wire.ts';

const validateModerationRequest = validator('ModerationRequest');

/** OpenAI's categories, each with whether images are judged by it too. */
const CATEGORIES: ReadonlyMap<string, boolean> = new Map([
  ['harassment', false],
  ['harassment/threatening', false],
  ['hate', false],
  ['hate/threatening', false],
  ['illicit', false],
  ['illicit/violent', false],
  ['self-harm', true],
  ['self-harm/instructions', true],
  ['self-harm/intent', true],
  ['sexual', true],
  ['sexual/minors', false],
  ['violence', true],
  ['violence/graphic', true],
]);

/** Plain words that are flagged, whatever surrounds them. */
const WORDS: ReadonlyMap<string, string> = new Map([
  ['bomb', 'illicit/violent'],
  ['idiot', 'harassment'],
  ['kill', 'violence'],
  ['murder', 'violence'],
  ['porn', 'sexual'],
  ['suicide', 'self-harm'],
]);

const DIRECTIVE = /\bflag:([a-z-]+(?:\/[a-z]+)?)/g;
/** Characters of one request that are read, whatever it holds: the sandbox shares the gateway's thread. */
const MAX_READ = 100_000;
const FLAGGED = 0.99;
const CLEAN = 0.01;

type Part = Exclude<Exclude<ModerationRequest['input'], string>[number], string>;

/** One thing to judge. */
interface Input {
  readonly text: string;
  readonly kinds: readonly ('text' | 'image')[];
}

/** `POST /v1/moderations`: flags the categories that `flag:<category>` names, and a few plain words. */
export function moderate(body: string, response: ServerResponse): void {
  const request = parseJson(body);
  if (!validateModerationRequest(request)) {
    sendError(response, 400, 'invalid_request', 'The request is not a moderation request.');
    return;
  }
  if (request.model !== MODERATION_MODEL) {
    sendError(response, 404, 'model_not_found', `The sandbox has no moderation model ${request.model}.`);
    return;
  }
  const inputs = bounded(inputsOf(request.input));
  const fault = faultIn(inputs.map(({ text }) => text).join('\n'));
  if (fault !== undefined) {
    sendFault(response, fault, { stream: false, empty: { results: [] } });
    return;
  }
  sendJson(response, 200, {
    id: `modr-${createHash('sha256').update(body).digest('hex').slice(0, 24)}`,
    model: MODERATION_MODEL,
    results: inputs.map(judge),
  });
}

/** One input for each text; a list with a part in it is one input as a whole. */
function inputsOf(input: ModerationRequest['input']): Input[] {
  const list = typeof input === 'string' ? [input] : input;
  const texts = list.filter((item) => typeof item === 'string');
  if (texts.length === list.length) return texts.map((text) => ({ text, kinds: ['text'] }));
  const parts = list.map((item): Part => (typeof item === 'string' ? { type: 'text', text: item } : item));
  const kinds = [...new Set(parts.map(({ image_url: image }) => (image === undefined ? 'text' : 'image')))];
  return [{ text: parts.map(({ text }) => text ?? '').join('\n'), kinds }];
}

/** The inputs that are read, the first ones first. */
function bounded(inputs: readonly Input[]): Input[] {
  let left = MAX_READ;
  return inputs.map(({ text, kinds }) => {
    const read = text.slice(0, left);
    left -= read.length;
    return { text: read, kinds };
  });
}

function judge({ text, kinds }: Input): ModerationResult {
  const flagged = flaggedCategories(text.toLowerCase());
  const ofEach = <T>(value: (category: string, judgesImages: boolean) => T): Record<string, T> =>
    Object.fromEntries([...CATEGORIES].map(([category, judgesImages]) => [category, value(category, judgesImages)]));
  return {
    flagged: flagged.size > 0,
    categories: ofEach((category) => flagged.has(category)),
    category_scores: ofEach((category) => (flagged.has(category) ? FLAGGED : CLEAN)),
    category_applied_input_types: ofEach((_, judgesImages) => kinds.filter((kind) => kind === 'text' || judgesImages)),
  };
}

/** A category within another (`violence/graphic`) flags that one too. */
function flaggedCategories(text: string): Set<string> {
  const named = [...text.matchAll(DIRECTIVE)].map(([, category = '']) => category);
  const meant = text.split(/[^a-z]+/).map((word) => WORDS.get(word) ?? '');
  const flagged = [...named, ...meant].filter((category) => CATEGORIES.has(category));
  return new Set(flagged.flatMap((category) => [category, category.split('/')[0] ?? category]));
}

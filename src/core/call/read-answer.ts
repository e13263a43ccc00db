import type { GatheredResponse } from '../../net/exchange.ts';
import type {
  Adapter,
  ImageCall,
  ModerationCall,
  UpstreamImage,
  UpstreamImages,
  WholeTranslation,
} from '../../providers/wire/adapter.ts';
import { parseJson } from '../../providers/wire/json.ts';
import { paidFor } from '../../providers/wire/upstream-error.ts';
import { nameThoughts } from '../price/chunk-pieces.ts';
import { Produced, type Told } from '../price/produced.ts';
import type { ProviderJson } from './written-answer.ts';

/** The parts of a request that its answer is read by. */
export type AnswerKind =
  | { readonly operation: 'chat' }
  | { readonly operation: 'image'; readonly call: ImageCall }
  | { readonly operation: 'moderation'; readonly call: ModerationCall };

/** A whole answer, read: what it is billed by, and the part of it that the caller gets as the provider said it. */
export interface ReadAnswer<Json extends ProviderJson = ProviderJson> extends Told {
  /** One, but for the images of a stream: one for each. */
  readonly json: readonly [Json, ...Json[]];
}

const NOTHING_SAID = { texts: [], omittedBytes: 0, audioTokens: 0 };

/**
 * Reads a 2xx answer. Pure, so that any thread can do it.
 * @param secret what the request carried
 * @throws UpstreamError with what the provider reported for an answer that cannot be used
 */
export const readAnswer = (
  adapter: Adapter,
  kind: AnswerKind,
  response: GatheredResponse,
  secret: string | undefined,
): ReadAnswer<string> =>
  paidFor(
    () => (kind.operation === 'moderation' ? undefined : adapter.reportedUsage(parseJson(response.text))),
    () => readUsable(adapter, kind, response, secret),
  );

function readUsable(
  adapter: Adapter,
  kind: AnswerKind,
  response: GatheredResponse,
  secret: string | undefined,
): ReadAnswer<string> {
  switch (kind.operation) {
    case 'chat': {
      const completion = adapter.parseResponse(response, secret);
      const produced = new Produced();
      produced.addWhole(completion);
      const { fields, choices } = completion;
      for (const { message } of choices) nameThoughts(message);
      return { ...produced.told(), json: [JSON.stringify({ ...fields, choices })] };
    }
    case 'image': {
      return madeImages(parse(adapter.images, response, kind.call, secret), kind.call.request.stream === true);
    }
    case 'moderation': {
      const { model, results } = parse(adapter.moderations, response, kind.call, secret);
      const json = JSON.stringify({ results });
      return { model, usage: undefined, said: NOTHING_SAID, images: 0, json: [json] };
    }
  }
}

function parse<Call, Answer>(
  translation: WholeTranslation<Call, Answer> | undefined,
  response: GatheredResponse,
  call: Call,
  secret: string | undefined,
): Answer {
  if (translation === undefined) throw new Error('an answer came to a request that the adapter cannot make');
  return translation.parseResponse(response, call, secret);
}

/** @param apart the caller gets each image by itself */
export function madeImages({ model, usage, images, fields }: UpstreamImages, apart: boolean): ReadAnswer<string> {
  const [first = {}, ...others] = images.map(imageItem);
  const { type, created_at, ...kept } = fields; // The gateway's own in events.
  const write = (item: object): string => JSON.stringify({ ...kept, ...item });
  const json: ReadAnswer<string>['json'] = apart
    ? [write(first), ...others.map(write)]
    : [JSON.stringify({ ...fields, data: [first, ...others] })];
  return { model, usage, said: NOTHING_SAID, images: images.length, json };
}

const imageItem = ({ base64, url, revisedPrompt }: UpstreamImage): object => ({
  ...(base64 === undefined ? {} : { b64_json: base64 }),
  ...(url === undefined ? {} : { url }),
  ...(revisedPrompt === undefined ? {} : { revised_prompt: revisedPrompt }),
});

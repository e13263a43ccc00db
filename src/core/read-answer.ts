import type { GatheredResponse } from '../net/exchange.ts';
import type {
  Adapter,
  ImageCall,
  ModerationCall,
  UpstreamImage,
  UpstreamImages,
  WholeTranslation,
} from '../providers/adapter.ts';
import type { ProviderJson } from './json-text.ts';
import { Produced, type Told } from './produced.ts';

/** What was asked, as far as its answer is read by it. */
export type AnswerKind =
  | { readonly operation: 'chat' }
  | { readonly operation: 'image'; readonly call: ImageCall }
  | { readonly operation: 'moderation'; readonly call: ModerationCall };

/** A whole answer, read: what it is billed by, and the part of it that the caller gets as the provider said it. */
export interface ReadAnswer<Json extends ProviderJson = ProviderJson> extends Told {
  readonly json: Json;
}

const NOTHING_SAID = { texts: [], omittedBytes: 0, audioTokens: 0 };

/**
 * Reads a 2xx answer. Pure, so that any thread can do it.
 * @param secret what the request carried
 * @throws UpstreamError
 */
export function readAnswer(
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
      return { ...produced.told(), json: JSON.stringify({ ...fields, choices }) };
    }
    case 'image': {
      const made = parse(adapter.images, response, kind.call, secret);
      const { model, usage, images } = made;
      return { model, usage, said: NOTHING_SAID, images: images.length, json: imagesJson(made) };
    }
    case 'moderation': {
      const { model, results } = parse(adapter.moderations, response, kind.call, secret);
      const json = JSON.stringify({ results });
      return { model, usage: undefined, said: NOTHING_SAID, images: 0, json };
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

const imagesJson = ({ images, fields }: UpstreamImages): string =>
  JSON.stringify({ ...fields, data: images.map(imageItem) });

const imageItem = ({ base64, url, revisedPrompt }: UpstreamImage): object => ({
  ...(base64 === undefined ? {} : { b64_json: base64 }),
  ...(url === undefined ? {} : { url }),
  ...(revisedPrompt === undefined ? {} : { revised_prompt: revisedPrompt }),
});

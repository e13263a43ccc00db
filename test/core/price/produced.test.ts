import { afterAll, describe, expect, it } from 'vitest';
import { Produced } from '../../../src/core/provider-answer.ts';
import type { Mapping } from '../../../src/domain/model.ts';
import { NO_USAGE, type Usage } from '../../../src/domain/usage.ts';
import type { ChatRequest, CompletionMessage } from '../../../src/generated/types.ts';
import { createTokenEstimator } from '../../../src/providers/tokens/token-estimate.ts';
import { mappingOf } from '../../providers/answers.ts';

const estimator = createTokenEstimator();

afterAll(() => estimator.close());

const IMAGE = { type: 'image_url' as const, image_url: { url: 'data:image/png;base64,AAAA' } };

/** Two images, a sound, a film, a file and a word. */
const ASKED: ChatRequest = {
  model: 'm',
  messages: [
    { role: 'system', content: 'Hello' },
    {
      role: 'user',
      content: [
        IMAGE,
        IMAGE,
        { type: 'input_audio', input_audio: { data: 'AAAA' } },
        { type: 'video_url', video_url: { url: 'https://example.com/a.mp4' } },
        { type: 'file', file: { file_id: 'f' } },
      ],
    },
  ],
};

const priced = (prices: Mapping['prices'], tiers?: Mapping['tiers']): Mapping =>
  mappingOf('p', { prices, ...(tiers === undefined ? {} : { tiers }) });

const PLAIN = priced({ prompt: 1n, completion: 1n });

const REPORTED: Usage = { ...NO_USAGE, promptTokens: 10, completionTokens: 5 };

function answered(
  usage: Usage | undefined,
  message: Partial<CompletionMessage> = {},
  mostOutputTokens?: number,
): Produced {
  const produced = new Produced({ mostOutputTokens });
  const whole = { role: 'assistant' as const, content: null, ...message };
  produced.addWhole({ model: 'm', choices: [{ index: 0, finish_reason: 'stop', message: whole }], usage, fields: {} });
  return produced;
}

describe('what a call is billed for', () => {
  it('is what the provider reported, whatever was said', async () => {
    expect(await answered(REPORTED, { content: 'Hello' }).usage(estimator, ASKED, PLAIN)).toEqual(REPORTED);
  });

  it('is estimated where it reported nothing: text by the tokenizer, anything else by an allowance', async () => {
    const produced = answered(undefined, { content: 'Hello, world!', images: [IMAGE] });

    expect(await produced.usage(estimator, ASKED, PLAIN)).toEqual({
      ...NO_USAGE,
      promptTokens: 3 + 2 * 4 + 1 + 2 * 765 + 960 + 7890 + 1548,
      promptImageTokens: 2 * 765,
      promptAudioTokens: 960,
      promptVideoTokens: 7890,
      completionTokens: 4 + 1290,
      completionImageTokens: 1290,
      estimated: true,
    });
  });

  it('is never estimated beyond the output that the call was held to, which is what the provider could charge for', async () => {
    const long = { content: 'Hello, world!', images: [IMAGE] };
    const ofWhole = await answered(undefined, long, 3).usage(estimator, ASKED, PLAIN);
    const cut = new Produced({ mostOutputTokens: 7 });
    cut.addChunk({ model: 'm', choices: [], usage: REPORTED, fields: {} });
    cut.addChunk({
      model: 'm',
      choices: [{ index: 0, delta: { content: 'Hello, world!' }, finish_reason: null }],
      usage: undefined,
      fields: {},
    });
    const ofCut = await cut.usageSoFar(estimator, ASKED, PLAIN);

    expect([ofWhole.completionTokens, ofWhole.completionImageTokens, ofCut.completionTokens]).toEqual([3, 3, 7]);
    expect((await answered(REPORTED, {}, 3).usage(estimator, ASKED, PLAIN)).completionTokens).toBe(5);
  });

  it.each<[string, Mapping, Partial<Usage>]>([
    ['none', PLAIN, {}],
    ['each given', priced({ image: 1n }), { promptImages: 2 }],
    ['each made', priced({ per_image: 0n }), { images: 1 }],
    ['each given, in a tier only', priced({}, [{ abovePromptTokens: 5, prices: { image: 1n } }]), { promptImages: 2 }],
  ])('counts the images that have a price each: %s', async (_, mapping, counted) => {
    const produced = answered(REPORTED, { images: [IMAGE] });

    expect(await produced.usage(estimator, ASKED, mapping)).toEqual({ ...REPORTED, ...counted });
    expect(produced.reportedUsage(ASKED, mapping)).toEqual({ ...REPORTED, ...counted });
  });

  it('keeps the number of made images that the provider told where it is larger', async () => {
    const produced = answered({ ...REPORTED, images: 3 }, { images: [IMAGE] });

    expect((await produced.usage(estimator, ASKED, priced({ per_image: 1n }))).images).toBe(3);
  });

  it('is nothing where nothing was reported and nothing may be estimated', () => {
    expect(answered(undefined, { content: 'Hello' }).reportedUsage(ASKED, PLAIN)).toBeUndefined();
  });
});

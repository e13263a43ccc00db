// The most that a call may cost: what a key with a limit holds back for it.
import { describe, expect, it } from 'vitest';
import { boundOf, type Demand, isPriced } from '../../../src/core/operations.ts';
import {
  ALLOWANCES,
  CallBounds,
  chatDemand as demandOf,
  imageDemand,
  MODERATION_DEMAND,
} from '../../../src/core/worst-case.ts';
import { ApiError } from '../../../src/domain/errors.ts';
import { type Mapping, TEXT_ONLY } from '../../../src/domain/model.ts';
import type { ChatRequest, ContentPart } from '../../../src/generated/types.ts';

const boundsOf = (candidates: readonly Mapping[], demand: Demand) => new CallBounds(candidates, () => demand);

const mapping = (more: Partial<Mapping> = {}): Mapping => ({
  ...TEXT_ONLY,
  id: 'acme/model',
  providerId: 'acme',
  modelId: 'model',
  externalId: 'model',
  custom: false,
  names: ['model'],
  providerNames: ['acme'],
  prices: { prompt: 2n, completion: 10n },
  maxOutput: 1000,
  freeFlag: false,
  ...more,
});

const { maxOutput: _, ...endless } = mapping();

const chatDemand = (request: ChatRequest, minOutputTokens = 1) => demandOf(request, 16_384, minOutputTokens);

const asking = (more: Partial<ChatRequest> = {}): ChatRequest => ({
  model: 'model',
  messages: [{ role: 'user', content: 'Hi' }],
  ...more,
});

const withPart = (part: ContentPart): ChatRequest =>
  asking({
    messages: [
      {
        role: 'user',
        content: [{ type: 'text', text: 'Look' }, part],
      },
    ],
  });

const bytes = (request: ChatRequest): bigint => BigInt(JSON.stringify(request).length);

const saying = (content: string | ContentPart[]): ChatRequest => asking({ messages: [{ role: 'user', content }] });

describe('the bound of a chat', () => {
  it('is the bytes of the body at the highest input price, the output at the highest output price, and the fees', () => {
    const prices = { prompt: 2n, completion: 10n, input_cache_write_1h: 5n, internal_reasoning: 12n, request: 700n };

    expect(boundOf(mapping({ prices }), chatDemand(asking({ n: 3, max_tokens: 40 })))).toEqual({
      fixed: 700n + 5n * bytes(asking({ n: 3, max_tokens: 40 })),
      perOutputToken: 36n,
      maxOutputTokens: 40,
    });
  });

  it('takes the highest price of all tiers, for a tier may apply', () => {
    const tiers = [{ abovePromptTokens: 200_000, prices: { prompt: 4n, completion: 15n, request: 1n } }];

    expect(boundOf(mapping({ tiers }), chatDemand(asking()))).toEqual({
      fixed: 1n + 4n * bytes(asking()),
      perOutputToken: 15n,
      maxOutputTokens: 1000,
    });
  });

  it('counts text in bytes of UTF-8, as it is sent on', () => {
    const { textTokens } = chatDemand(saying('日本\ud800'));

    expect(textTokens).toBe(Buffer.byteLength(JSON.stringify(saying(''))) + 6 + 6);
  });

  it.each<[string, ContentPart[], number, object]>([
    [
      'an image',
      [{ type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(9000)}` } }],
      ALLOWANCES.image,
      { hasPictures: true, hasAudio: false, promptImages: 1 },
    ],
    [
      'a short sound',
      [{ type: 'input_audio', input_audio: { data: 'A'.repeat(9000), format: 'wav' } }],
      1000,
      { hasPictures: false, hasAudio: true, promptImages: 0 },
    ],
    [
      'a long sound',
      [{ type: 'input_audio', input_audio: { data: 'A'.repeat(240_000), format: 'mp3' } }],
      10_000,
      { hasPictures: false, hasAudio: true, promptImages: 0 },
    ],
    [
      'a sound of a format that may be next to nothing for a long silence',
      [{ type: 'input_audio', input_audio: { data: 'A'.repeat(9000), format: 'opus' } }],
      ALLOWANCES.file,
      { hasPictures: true, hasAudio: true, promptImages: 0 },
    ],
    [
      'a film',
      [{ type: 'video_url', video_url: { url: `data:video/mp4;base64,${'A'.repeat(9000)}` } }],
      ALLOWANCES.film,
      { hasPictures: true, hasAudio: true, promptImages: 0 },
    ],
    [
      'a file',
      [{ type: 'file', file: { file_data: 'A'.repeat(9000) } }],
      ALLOWANCES.file,
      { hasPictures: true, hasAudio: true, promptImages: 0 },
    ],
    ...[
      'https://films.test/a.MP4?x=1',
      ' https://films.test/a.m\np4 ',
      'https://www.youtube.com/watch?v=x',
      'https://generativelanguage.googleapis.com/v1beta/files/x',
      `data:application/pdf;base64,${'A'.repeat(9000)}`,
      `data:video/mp4;base64,${'A'.repeat(9000)}`,
    ].map((url): [string, ContentPart[], number, object] => [
      `what is no image, sent as one: ${url.slice(0, 20)}`,
      [{ type: 'image_url', image_url: { url } }],
      ALLOWANCES.file,
      { hasPictures: true, hasAudio: true, promptImages: 1 },
    ]),
  ])('has an allowance for %s, whose data is no text', (_, content, mediaTokens, kinds) => {
    const demand = chatDemand(saying(content));

    expect(demand).toMatchObject({ mediaTokens, ...kinds });
    expect(demand.textTokens).toBeLessThan(200);
  });

  it('has the same allowance for images of an earlier answer, which come back besides its content', () => {
    const returned = (url: string) => {
      const answer = { role: 'assistant' as const, content: null, images: [{ type: 'image_url', image_url: { url } }] };
      return chatDemand(asking({ messages: [answer, { role: 'user', content: 'Go on' }] }));
    };

    expect(returned('data:image/png;base64,AAAA')).toMatchObject({ mediaTokens: ALLOWANCES.image, hasPictures: true });
    expect(returned('https://films.test/a.mp4')).toMatchObject({ mediaTokens: ALLOWANCES.file, hasAudio: true });
  });

  it('has an allowance for what the request names by reference: a cache of Google’s', () => {
    const allowed = (more: object) => chatDemand({ ...asking(), ...more }).mediaTokens;

    expect([
      allowed({ cachedContent: 'cachedContents/x' }),
      allowed({ extra_body: { google: { cached_content: 'cachedContents/x' } } }),
      allowed({ cachedContent: null }),
    ]).toEqual([ALLOWANCES.file, ALLOWANCES.file, 0]);
  });

  it('counts an image by its address as text too', () => {
    const url = `https://images.test/${'a'.repeat(500)}`;

    expect(chatDemand(saying([{ type: 'image_url', image_url: { url } }])).textTokens).toBeGreaterThan(500);
  });

  it('charges audio and images at their own prices only where there are any', () => {
    const prices = { prompt: 2n, completion: 10n, input_audio: 90n, input_image: 70n, image: 1000n };
    const fixed = (request: ChatRequest) => boundOf(mapping({ prices }), chatDemand(request))?.fixed ?? 0n;
    const [sound, picture] = [
      withPart({ type: 'input_audio', input_audio: { data: '', format: 'mp3' } }),
      withPart({ type: 'image_url', image_url: { url: 'x:' } }),
    ];

    expect(fixed(asking())).toBe(2n * bytes(asking()));
    expect(fixed(sound)).toBe(90n * (bytes(sound) - 2n + 1000n));
    expect(fixed(picture)).toBe(70n * (bytes(picture) + BigInt(ALLOWANCES.image)) + 1000n);
  });

  it('bounds what is no text by the context window, where that is known', () => {
    const film = withPart({ type: 'video_url', video_url: { url: 'x:' } });

    expect(boundOf(mapping({ contextLength: 128_000 }), chatDemand(film))?.fixed).toBe(2n * (bytes(film) + 128_000n));
  });

  it('has room for spoken answers where they are asked for, or where the model gives nothing else', () => {
    const prices = { prompt: 0n, completion: 10n, output_audio: 80n };
    const price = (request: ChatRequest, more: Partial<Mapping> = {}) =>
      boundOf(mapping({ prices, ...more }), chatDemand(request))?.perOutputToken;

    expect([
      price(asking()),
      price(asking({ modalities: ['text', 'audio'] })),
      price(asking({ audio: { voice: 'alloy' } })),
      price(asking(), { outputModalities: ['audio'] }),
    ]).toEqual([10n, 80n, 80n, 80n]);
  });

  it('has room for web searches, for what they bring in, and for what a predicted answer is charged', () => {
    const prices = { prompt: 1n, completion: 10n, web_search: 50_000n };
    const fixed = (request: ChatRequest) =>
      (boundOf(mapping({ prices }), chatDemand(request))?.fixed ?? 0n) - bytes(request);
    const search = { type: 'web_search_20260209', name: 'web_search', max_uses: 12 };
    const prediction = { type: 'content', content: 'Yes' };

    expect(fixed(asking({ web_search_options: {} }))).toBe(10n * 60_000n);
    expect(fixed(asking({ tools: [search] }))).toBe(12n * 60_000n + 1000n);
    expect(fixed(asking({ prediction }))).toBe(10n * BigInt(JSON.stringify(prediction).length));
  });

  it('has an end to the output: the caller’s maximum or the model’s, whichever is smaller', () => {
    const most = (request: ChatRequest, of = mapping()) => boundOf(of, chatDemand(request))?.maxOutputTokens;

    expect([
      most(asking()),
      most(asking({ max_tokens: 10 })),
      most(asking({ max_completion_tokens: 20, max_tokens: 10 })),
      most(asking({ max_tokens: 5000 })),
      most(asking({ max_tokens: 5000 }), endless),
      most(asking(), endless),
    ]).toEqual([1000, 10, 20, 1000, 5000, 16_384]);
  });

  it('leaves room in the context window for the prompt, unless the caller named the maximum', () => {
    const most = (content: string, more: Partial<ChatRequest> = {}) =>
      boundOf(mapping({ contextLength: 1500 }), chatDemand({ ...saying(content), ...more }))?.maxOutputTokens;
    const framing = JSON.stringify(saying('')).length;

    expect(most('x'.repeat(4000 - framing))).toBe(500);
    expect(most('x'.repeat(40_000))).toBe(1);
    expect(most('x'.repeat(40_000), { max_tokens: 700 })).toBe(700);
  });

  it('is the context window where the longest answer is not known, less a prompt that may be dense', () => {
    const most = (content: string) =>
      boundOf({ ...endless, contextLength: 8192 }, chatDemand(saying(content)))?.maxOutputTokens;
    const framing = JSON.stringify(saying('')).length;

    expect([most('x'.repeat(4000 - framing)), most('x'.repeat(40_000))]).toEqual([8192 - 2000, 1]);
  });

  it('needs no end where nothing is charged for it', () => {
    const free = { ...endless, prices: { prompt: 0n, completion: 0n } };

    expect(boundOf(free, chatDemand(asking()))).toEqual({ fixed: 0n, perOutputToken: 0n, maxOutputTokens: 0 });
  });
});

describe('the bound of other actions', () => {
  it('of images is the fee and the tokens of each, and the prompt', () => {
    const request = { prompt: 'A fox', n: 3 };
    const prompt = BigInt(JSON.stringify(request).length);
    const bound = (prices: Mapping['prices'], more: Partial<Mapping> = {}) =>
      boundOf(mapping({ outputModalities: ['image'], maxOutput: 9000, prices, ...more }), imageDemand(request));

    expect(bound({ per_image: 40n, request: 1n })).toEqual({ fixed: 121n, perOutputToken: 0n, maxOutputTokens: 0 });
    expect(bound({ prompt: 2n, completion: 5n, output_image: 30n })?.fixed).toBe(2n * prompt + 3n * 30n * 8192n);
    expect(bound({ prompt: 2n, completion: 5n }, { maxOutput: 100 })?.fixed).toBe(2n * prompt + 3n * 5n * 100n);
    expect(bound({ prompt: 2n })).toBeUndefined();
  });

  it('of a moderation is its fee alone', () => {
    const bound = (more: Partial<Mapping>) => boundOf(mapping(more), MODERATION_DEMAND);

    expect(bound({ prices: { prompt: 9n, completion: 9n, request: 4n } })?.fixed).toBe(4n);
    expect(bound({ prices: {}, freeFlag: true })?.fixed).toBe(0n);
    expect(bound({ prices: { prompt: 0n } })?.fixed).toBe(0n);
    expect(bound({ prices: {} })).toBeUndefined();
    // Nobody would report its tokens.
    expect(bound({ prices: { prompt: 9n, completion: 9n } })).toBeUndefined();
  });
});

describe('a mapping that cannot be bounded', () => {
  it.each<[string, Mapping, string]>([
    [
      'a price that is not known',
      mapping({ prices: { prompt: 1n } }),
      'Name another model, or ask the operator to state its price (for an upstream: UPSTREAM_<NAME>_PRICES).',
    ],
    [
      'a price that one tier lacks',
      mapping({ tiers: [{ abovePromptTokens: 10, prices: { prompt: 1n } }] }),
      'Name another model, or ask the operator to state its price (for an upstream: UPSTREAM_<NAME>_PRICES).',
    ],
    [
      'a price of a custom model that is not known',
      mapping({ prices: {}, custom: true }),
      'Name another model, or have an administrator state its price (custom-models update acme/model --price).',
    ],
  ])('has %s: 400, which says what to configure', (_, candidate, advice) => {
    const bounds = boundsOf([candidate], chatDemand(asking()));
    const { least } = bounds;
    if (!(least instanceof ApiError)) throw new Error('a candidate without a price has no bound');
    const { status, code, param, message } = least;

    expect([bounds.has(candidate), { status, code, param, message }]).toEqual([
      false,
      {
        status: 400,
        code: 'invalid_request',
        param: '/model',
        message: `A usage limit applies to this API key, and no price of the model is known at any permitted provider: the limit could not be kept. ${advice}`,
      },
    ]);
  });

  it('is in lists as long as its price is known', () => {
    expect([isPriced(endless, 'chat'), isPriced(mapping({ prices: { prompt: 1n } }), 'chat')]).toEqual([true, false]);
  });
});

describe('the worst case of several candidates', () => {
  const candidate = (id: string, request: bigint, completion: bigint, maxOutput: number): Mapping =>
    mapping({ id, prices: { prompt: 0n, request, completion }, maxOutput });
  const cheap = candidate('cheap', 100n, 1n, 500);
  const dear = candidate('dear', 50n, 10n, 40);

  it('is what the most expensive of them may cost at the maximum that the caller named', () => {
    const bounds = boundsOf([cheap, dear], chatDemand(asking({ max_tokens: 500 })));

    expect([bounds.least, bounds.within(10_000n)]).toEqual([600n, { amount: 600n, maxOutputTokens: null }]);
    const reservation = { ...bounds.within(10_000n), limit: 'the limit' };
    expect(bounds.outputLimit(dear, reservation)).toEqual({ tokens: 40, isOurs: true, cutBy: undefined });
    expect(bounds.outputLimit(cheap, reservation)).toEqual({ tokens: 500, isOurs: false, cutBy: undefined });
  });

  it('is as much output as an amount pays for at each of them, where the caller named none', () => {
    const bounds = boundsOf([cheap, dear], chatDemand(asking()));

    expect(bounds.least).toBe(101n);
    expect([10_000n, 599n, 450n, 449n, 101n].map((amount) => bounds.within(amount))).toEqual([
      { amount: 600n, maxOutputTokens: 500 },
      { amount: 599n, maxOutputTokens: 499 },
      { amount: 450n, maxOutputTokens: 350 },
      { amount: 440n, maxOutputTokens: 39 },
      { amount: 101n, maxOutputTokens: 1 },
    ]);
    const within = (amount: bigint) => ({ ...bounds.within(amount), limit: 'the limit' });
    expect(bounds.outputLimit(cheap, within(449n))).toEqual({ tokens: 39, isOurs: true, cutBy: 'the limit' });
    expect(bounds.outputLimit(dear, within(599n))).toEqual({ tokens: 40, isOurs: true, cutBy: undefined });
  });

  it('is no shorter output than an answer needs, or than the models have', () => {
    const leastOf = (minOutputTokens: number, more: Partial<ChatRequest> = {}) =>
      boundsOf([cheap, dear], chatDemand(asking(more), minOutputTokens)).least;
    expect([leastOf(30), leastOf(256), leastOf(900)]).toEqual([350n, 450n, 600n]);
    expect(leastOf(256, { max_tokens: 5 })).toBe(105n);
  });

  it('does not depend on the length of an answer that costs nothing by the token', () => {
    const free = candidate('free', 7n, 0n, 500);
    const bounds = boundsOf([free], chatDemand(asking()));

    expect([bounds.least, bounds.within(7n)]).toEqual([7n, { amount: 7n, maxOutputTokens: 0 }]);
  });
});

import { setImmediate } from 'node:timers/promises';
import OpenAI from 'openai';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../../src/providers/sandbox/sandbox.ts';
import { pngSize } from '../../support/images.ts';

let sandbox: Sandbox;
let client: OpenAI;

beforeAll(async () => {
  sandbox = await startSandbox();
  client = new OpenAI({ apiKey: sandbox.key, baseURL: `${sandbox.origin}/v1`, maxRetries: 0 });
});

afterAll(() => sandbox.close());

type More = Partial<OpenAI.ImageGenerateParamsNonStreaming> & { readonly aspect_ratio?: string };

const draw = (more: More = {}) =>
  client.images.generate({ model: 'sandbox-image-plus', prompt: 'a red fox', size: '64x32', ...more });

const post = (body: object) =>
  fetch(`${sandbox.origin}/v1/images/generations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${sandbox.key}` },
    body: JSON.stringify(body),
  });

async function pictures(more: More = {}): Promise<string[]> {
  const { data = [] } = await draw(more);
  return data.map(({ b64_json: image = '' }) => image);
}

/** The colours of a picture in base64, which is decoded for them. */
async function coloursOf(image = ''): Promise<Set<number>> {
  const { data, info } = await sharp(Buffer.from(image, 'base64'), { failOn: 'error' })
    .raw()
    .toBuffer({ resolveWithObject: true });
  expect(info.channels).toBe(3);
  return new Set(Array.from({ length: data.length / 3 }, (_, pixel) => data.readUIntBE(3 * pixel, 3)));
}

describe('the images of the sandbox', () => {
  it('are PNG files of the size asked for, with usage in OpenAI’s form', async () => {
    const answer = await draw({ n: 2 });

    expect(answer).toEqual({
      created: 1795219200,
      output_format: 'png',
      size: '64x32',
      data: [{ b64_json: expect.any(String) }, { b64_json: expect.any(String) }],
      usage: {
        input_tokens: 3,
        input_tokens_details: { text_tokens: 3, image_tokens: 0 },
        output_tokens: 4,
        total_tokens: 7,
      },
    });
    expect(answer.data?.map(({ b64_json: image }) => pngSize(image))).toEqual([
      [64, 32],
      [64, 32],
    ]);
  });

  it('are the same for the same request, and differ by prompt, number and model', async () => {
    const [first, second] = await pictures({ n: 2 });
    const [again] = await pictures();
    const [other] = await pictures({ prompt: 'a blue fox' });
    const [finer] = await pictures({ model: 'sandbox-image-max' });

    expect(again).toBe(first);
    expect(new Set([first, second, other, finer]).size).toBe(4);
  });

  it('use every shade of their model, and the colour of the emblem', async () => {
    const colours = async (model: string) => {
      const [image] = await pictures({ model, size: '512x512' });
      return (await coloursOf(image)).size;
    };

    expect([await colours('sandbox-image-plus'), await colours('sandbox-image-max')]).toEqual([17, 65]);
  });

  it('are small files, even the largest', async () => {
    const [image = ''] = await pictures({ model: 'sandbox-image-max', size: '2048x2048' });

    expect(image.length).toBeLessThan(512 * 1024);
  });

  it.each<[string, More, number[]]>([
    ['no size', { size: null }, [1024, 1024]],
    ['any size', { size: 'auto' }, [1024, 1024]],
    ['an aspect ratio', { size: null, aspect_ratio: '16:9' }, [1024, 576]],
    ['an upright aspect ratio', { size: 'auto', aspect_ratio: '1:2' }, [512, 1024]],
    ['an extreme aspect ratio', { size: null, aspect_ratio: '99:1' }, [1024, 16]],
    ['a size and an aspect ratio', { size: '16x48', aspect_ratio: '16:9' }, [16, 48]],
  ])('are drawn with %s', async (_name, more, size) => {
    expect((await pictures(more)).map((image) => pngSize(image))).toEqual([size]);
  });

  it.each<[string, object, number]>([
    ['a URL', { response_format: 'url' }, 400],
    ['another file format', { output_format: 'webp' }, 400],
    ['too wide a picture', { size: '2049x64' }, 400],
    ['too low a picture', { size: '64x15' }, 400],
    ['no size at all', { size: 'large' }, 400],
    ['an aspect ratio of nothing', { size: 'auto', aspect_ratio: '0:1' }, 400],
    ['eleven pictures', { n: 11 }, 400],
    ['more partial images than three', { stream: true, partial_images: 4 }, 400],
    ['a chat model', { model: 'sandbox-paid' }, 404],
    ['no model', { model: null }, 404],
  ])('are refused for %s', async (_name, more, status) => {
    const response = await post({ model: 'sandbox-image-plus', prompt: 'x', size: '64x64', ...more });

    expect(response.status).toBe(status);
    expect(await response.json()).toHaveProperty('error.message');
  });

  it('fail as the prompt asks', async () => {
    const fail = (fault: string) => post({ model: 'sandbox-image-max', prompt: `a fox fail:${fault}`, size: '64x64' });
    const limited = await fail('429');

    expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '1']);
    expect(await (await fail('empty')).json()).toEqual({ created: 1795219200, data: [] });
    expect(await (await fail('error')).json()).toHaveProperty('error');
    await expect((await fail('malformed')).json()).rejects.toThrow();
    await expect((await fail('cut')).text()).rejects.toThrow();
    expect((await fail('nonsense')).status).toBe(200);
  });
});

describe('drawing', () => {
  it('leaves the event loop to others', async () => {
    let turns = 0;
    let drawn = false;
    const drawing = pictures({ model: 'sandbox-image-max', size: '2048x2048', n: 2 }).finally(() => {
      drawn = true;
    });
    for (; !drawn; turns += 1) await setImmediate();

    expect((await drawing).map((image) => pngSize(image))).toEqual([
      [2048, 2048],
      [2048, 2048],
    ]);
    expect(turns).toBeGreaterThan(100);
  });

  it('is refused while too many pictures are waited for', async () => {
    const request = { model: 'sandbox-image-plus', prompt: 'x', size: '1024x1024' };
    const responses = await Promise.all(Array.from({ length: 60 }, () => post(request)));
    const statuses = responses.map(({ status }) => status);
    const refused = responses.find(({ status }) => status === 503);

    expect(new Set(statuses)).toEqual(new Set([200, 503]));
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(33);
    expect(await refused?.json()).toMatchObject({ error: { code: 'overloaded' } });
  });
});

describe('a chat with a model that draws', () => {
  const messages = [{ role: 'user' as const, content: 'a fox' }];
  const model = 'sandbox-image-plus';

  it('shows a picture in each choice after the echo', async () => {
    const { choices, usage } = await client.chat.completions.create({ model, messages, n: 2 });

    const picture = [{ type: 'image_url', image_url: { url: expect.stringMatching(/^data:image\/png;base64,iVBOR/) } }];
    expect(choices.map(({ message }) => message)).toEqual([
      { role: 'assistant', content: 'You said: a fox', images: picture },
      { role: 'assistant', content: 'You said (2): a fox', images: picture },
    ]);
    expect(usage).toEqual({
      prompt_tokens: 2,
      completion_tokens: 9 + 2048,
      total_tokens: 11 + 2048,
      completion_tokens_details: { image_tokens: 2048 },
    });
  });

  it('streams the picture before the end', async () => {
    const whole = await client.chat.completions.create({ model, messages });
    const stream = await client.chat.completions.create({ model, messages, stream: true });
    const deltas: object[] = [];
    for await (const { choices } of stream) for (const { delta } of choices) deltas.push(delta);

    expect(deltas.slice(-2)).toEqual([{ images: Object(whole.choices[0]?.message).images }, {}]);
  });

  it('fails as the prompt asks', async () => {
    const asked = client.chat.completions.create({ model, messages: [{ role: 'user', content: 'fail:503' }] });

    await expect(asked).rejects.toMatchObject({ status: 503 });
  });
});

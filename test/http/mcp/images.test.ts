// The image tools of `/mcp`: previews that clients can show, and files in UPLOAD_DIR and nowhere else.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import sharp from 'sharp';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../../src/domain/time.ts';
import { addRule, startGateway, type TestGateway } from '../../support/gateway.ts';
import { callTool, toolResultOf } from '../../support/mcp.ts';
import { callRow } from '../../support/rows.ts';
import { json, startUpstream, type TestUpstream, upstreamEnv } from '../../support/upstream.ts';

const NOW = Date.parse('2026-11-23T12:00:00Z');
/** What clients take: 1 MiB of JSON. */
const MOST_BASE64 = 1_048_576;

let folder: string;
let uploads: string;
let upstream: TestUpstream;
let gateway: TestGateway;

/** A picture that cannot be compressed. */
async function noise(side: number, format: 'png' | 'jpeg'): Promise<Buffer> {
  const image = sharp({
    create: {
      width: side,
      height: side,
      channels: 3,
      background: '#888',
      noise: { type: 'gaussian', mean: 128, sigma: 60 },
    },
  });
  return image.toFormat(format).toBuffer();
}

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'portcullis-uploads-'));
  uploads = path.join(folder, 'made/at/the/start');
  upstream = await startUpstream();
  gateway = await startGateway(
    {
      ...upstreamEnv('acme', upstream.origin, 'sandbox-image-max', 'sandbox-image-max=5/40'),
      DEFAULT_IMAGE_MODEL: 'sandbox-image-plus',
      UPLOAD_DIR: uploads,
      NANO_BANANA_MODEL: 'sandbox-image-max',
    },
    { clock: new ManualClock(NOW) },
  );
});

beforeEach(() => {
  rmSync(uploads, { recursive: true });
  mkdirSync(uploads);
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
  rmSync(folder, { recursive: true });
});

const drawn = (bytes: Buffer, count = 1) =>
  json({ created: 1, data: Array.from({ length: count }, () => ({ b64_json: bytes.toString('base64') })) });

describe('generate-image', () => {
  it('gives each image as a block, of the cheaper model and the size 1024x1024 where nothing is said', async () => {
    const answer = await callTool(gateway, 'generate-image', { prompt: 'a red fox' });
    const { content, _meta } = toolResultOf(answer);
    const { width, height } = await sharp(Buffer.from(content[0]?.data ?? '', 'base64')).metadata();

    expect([content, width, height]).toEqual([
      [{ type: 'image', mimeType: 'image/png', data: expect.any(String) }],
      1024,
      1024,
    ]);
    expect(_meta).toMatchObject({ 'portcullis/metadata': { used_model: 'sandbox-image-plus' } });
    expect(callRow(gateway, answer)).toMatchObject({ tool: 'generate-image', statusCode: 200 });
  });

  it('gives as many as asked for', async () => {
    const { content } = toolResultOf(
      await callTool(gateway, 'generate-image', { prompt: 'foxes', n: 4, size: '64x32', model: 'sandbox-image-max' }),
    );

    expect(content.map(({ type, mimeType }) => [type, mimeType])).toEqual(Array(4).fill(['image', 'image/png']));
  });

  it('makes previews of large images that fit into what clients take, all of them together', async () => {
    upstream.begin(drawn(await noise(900, 'png'), 4));
    const answer = await callTool(gateway, 'generate-image', {
      prompt: 'noise',
      n: 4,
      model: 'acme/sandbox-image-max',
    });
    const { content } = toolResultOf(answer);

    expect(content.map(({ mimeType }) => mimeType)).toEqual(Array(4).fill('image/jpeg'));
    expect(answer.text.length).toBeLessThan(MOST_BASE64);
  });

  it('shows a large image that comes as a data URL', async () => {
    const base64 = (await noise(900, 'png')).toString('base64');
    upstream.begin(json({ created: 1, data: [{ url: `data:image/png;base64,${base64}` }] }));
    const answer = await callTool(gateway, 'generate-image', { prompt: 'noise', model: 'acme/sandbox-image-max' });

    expect(toolResultOf(answer).content).toMatchObject([{ type: 'image', mimeType: 'image/jpeg' }]);
  });

  it('names the address of an image that the provider keeps', async () => {
    upstream.begin(json({ created: 1, data: [{ url: 'https://images.example/fox.png' }] }));
    const answer = await callTool(gateway, 'generate-image', { prompt: 'a fox', model: 'acme/sandbox-image-max' });

    expect(toolResultOf(answer).content).toEqual([
      { type: 'text', text: 'The provider keeps the image at https://images.example/fox.png' },
    ]);
  });

  it('says so where the provider sends something that is no image', async () => {
    upstream.begin(drawn(Buffer.from('<svg onload="alert(1)"/>')));
    const answer = await callTool(gateway, 'generate-image', { prompt: 'a fox', model: 'acme/sandbox-image-max' });

    expect(toolResultOf(answer)).toEqual({
      content: [{ type: 'text', text: 'The provider sent an image that cannot be read.' }],
      isError: true,
      _meta: { 'portcullis/code': 'upstream_error' },
    });
  });

  it('does not decode an image of too many pixels, however small it is', async () => {
    const bomb = sharp({ create: { width: 16_000, height: 16_000, channels: 3, background: '#000' } });
    upstream.begin(drawn(Buffer.concat([await bomb.png().toBuffer(), Buffer.alloc(800_000)])));
    const answer = await callTool(gateway, 'generate-image', { prompt: 'a fox', model: 'acme/sandbox-image-max' });

    expect(toolResultOf(answer)).toMatchObject({ isError: true, _meta: { 'portcullis/code': 'upstream_error' } });
  });

  it.each([
    [{ prompt: 'x', n: 5 }, '/n (5) must be <= 4.'],
    [{ prompt: 'x', n: 1e9 }, '/n (1000000000) must be <= 4.'],
    [{ prompt: 'x', n: 1.5 }, '/n (1.5) must be of type integer.'],
    [{ prompt: '' }, '/prompt ("") must NOT have fewer than 1 characters.'],
    [{}, '/prompt is missing.'],
  ])('%o is refused', async (args, message) => {
    expect(toolResultOf(await callTool(gateway, 'generate-image', args))).toMatchObject({
      isError: true,
      content: [{ text: message }],
    });
  });
});

describe('generate-nano-banana', () => {
  const banana = async (args: object = {}) =>
    toolResultOf(await callTool(gateway, 'generate-nano-banana', { prompt: 'a banana', ...args }));

  const texts = async (args: object = {}) => (await banana(args)).content.flatMap(({ text = [] }) => text);

  it('shows the image, and saves it under a name with the time', async () => {
    const { content } = await banana({ aspect_ratio: '16:9' });

    expect(content).toEqual([
      { type: 'image', mimeType: 'image/png', data: expect.any(String) },
      { type: 'text', text: `Saved as nano-banana-${NOW}.png.` },
    ]);
    expect(readdirSync(uploads)).toEqual([`nano-banana-${NOW}.png`]);
    expect((await sharp(readFileSync(path.join(uploads, `nano-banana-${NOW}.png`))).metadata()).format).toBe('png');
  });

  it('overwrites nothing: a second file of a name gets a suffix', async () => {
    expect([await texts({ filename: 'cat.png' }), await texts({ filename: 'cat.png' })]).toEqual([
      ['Saved as cat.png.'],
      ['Saved as cat-1.png.'],
    ]);
  });

  it('follows no link', async () => {
    const outside = path.join(folder, 'outside.png');
    writeFileSync(outside, 'mine');
    symlinkSync(outside, path.join(uploads, 'cat.png'));
    symlinkSync(path.join(folder, 'nowhere.png'), path.join(uploads, 'cat-1.png'));

    expect(await texts({ filename: 'cat.png' })).toEqual(['Saved as cat-2.png.']);
    expect([readFileSync(outside, 'utf8'), readdirSync(folder).includes('nowhere.png')]).toEqual(['mine', false]);
  });

  it('saves the format that the name says', async () => {
    await banana({ filename: 'cat.jpg' });

    expect((await sharp(readFileSync(path.join(uploads, 'cat.jpg'))).metadata()).format).toBe('jpeg');
  });

  it.each([
    '../cat.png',
    '..\\cat.png',
    '/etc/cat.png',
    'a/b.png',
    '.cat.png',
    '-rf.png',
    'cat.php',
    'cat.png.sh',
    'cat',
    'cat..png',
    'cat\u0000.png',
    'cat\n.png',
    'C:cat.png',
    'cat.png ',
    `${'a'.repeat(100)}.png`,
    `${'中'.repeat(90)}.png`,
    '',
  ])('writes nothing for the file name %j', async (filename) => {
    const result = await banana({ filename });

    expect([result.isError, readdirSync(uploads), readdirSync(folder).toSorted()]).toEqual([
      true,
      [],
      ['made', 'outside.png'],
    ]);
  });

  it('asks for a ratio that it knows', async () => {
    expect((await banana({ aspect_ratio: '21:9' })).content).toEqual([
      { type: 'text', text: '/aspect_ratio ("21:9") must be one of 1:1, 16:9, 4:3, 5:4.' },
    ]);
  });

  it('draws with the model of the sandbox on a fresh install, and writes nothing without UPLOAD_DIR', async () => {
    const other = await startGateway();
    const answer = await callTool(other, 'generate-nano-banana', { prompt: 'x', filename: 'cat.png' });
    const row = callRow(other, answer);
    await other.close();

    expect(toolResultOf(answer).content.map(({ type }) => type)).toEqual(['image']);
    expect(row).toMatchObject({ tool: 'generate-nano-banana', requestedModel: 'sandbox/sandbox-image-plus' });
  });

  it('draws with NANO_BANANA_MODEL where it is set', async () => {
    const answer = await callTool(gateway, 'generate-nano-banana', { prompt: 'x' });

    expect(callRow(gateway, answer)).toMatchObject({ requestedModel: 'sandbox-image-max' });
  });

  it('chooses no model that the rules deny', async () => {
    const other = await startGateway();
    addRule(other, 'key', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-image-plus'] } });
    const first = await callTool(other, 'generate-nano-banana', { prompt: 'x' });
    addRule(other, 'key', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-image-max'] } });
    const second = await callTool(other, 'generate-nano-banana', { prompt: 'x' });
    const row = callRow(other, first);
    await other.close();

    expect([row.requestedModel, toolResultOf(second)]).toMatchObject([
      'sandbox/sandbox-image-max',
      { isError: true, _meta: { 'portcullis/code': 'permission_denied' } },
    ]);
  });
});

it('a folder for uploads that cannot be written stops the start', async () => {
  writeFileSync(path.join(folder, 'file'), '');

  await expect(startGateway({ UPLOAD_DIR: path.join(folder, 'file/below') })).rejects.toThrow(
    /^UPLOAD_DIR: cannot write to /,
  );
});

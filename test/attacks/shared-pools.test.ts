// What all callers share beneath the event loop, libuv's threads and the memory of pictures: nobody holds it up for the others.
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import sharp from 'sharp';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type ServingProcess, serve, serveTests } from '../process/running.ts';
import { Browser } from '../support/browser.ts';
import { bearer, hello, JSON_TYPE } from '../support/chat.ts';
import { newDataDir } from '../support/gateway.ts';
import { toolResultOf } from '../support/mcp.ts';
import { head } from '../support/raw.ts';
import { type Answer, send } from '../support/request.ts';
import {
  chunk,
  completion,
  json,
  startUpstream,
  type TestUpstream,
  upstreamEnv,
  writeEvents,
} from '../support/upstream.ts';

const MB = 1024 * 1024;
const SIDE = 7000;
/** Decodes at once that held all threads, four times over. */
const MANY = 16;

/** A picture of 49 million pixels in 1 MB. */
let wall: Buffer;
let dot: Buffer;

let dataDir: string;
let uploads: string;
let upstream: TestUpstream;
let other: TestUpstream;
let server: ServingProcess;
/** People who have tried to sign in. */
let strangers = 0;

beforeAll(async () => {
  const background = { r: 20, g: 90, b: 200, alpha: 0.5 };
  wall = await sharp({ create: { width: SIDE, height: SIDE, channels: 4, background } })
    .png()
    .toBuffer();
  dot = await sharp({ create: { width: 8, height: 8, channels: 4, background } })
    .png()
    .toBuffer();
});

beforeEach(async () => {
  dataDir = newDataDir();
  uploads = mkdtempSync(path.join(tmpdir(), 'portcullis-uploads-'));
  upstream = await startUpstream();
  other = await startUpstream();
  other.begin((response, received) => {
    response.setHeader('connection', 'close'); // The next call looks the name up again.
    return json(completion('Hello'))(response, received);
  });
  upstream.begin((response, received) => {
    const drawn = received.text.includes('a dot') ? dot : wall;
    return json({ created: 1, data: [{ b64_json: drawn.toString('base64') }] })(response, received);
  });
});

afterEach(async () => {
  await Promise.all([upstream.close(), other.close()]);
  for (const folder of [dataDir, uploads]) rmSync(folder, { recursive: true, force: true });
});

async function begin(env: Readonly<Record<string, string>> = {}): Promise<void> {
  server = await serve({
    DATA_DIR: dataDir,
    UPLOAD_DIR: uploads,
    LOG_LEVEL: 'silent',
    ...upstreamEnv('acme', upstream.origin, 'sandbox-image-max', 'sandbox-image-max=5/40'),
    NANO_BANANA_MODEL: 'acme/sandbox-image-max',
    // By a name, which is looked up.
    ...upstreamEnv('named', other.origin.replace('127.0.0.1', 'localhost'), 'chatty', 'chatty=1/1'),
    ...env,
  });
}

const post = (target: string, body: object): Promise<Answer> =>
  send(server.origin, {
    method: 'POST',
    path: target,
    headers: [bearer(server.key ?? ''), JSON_TYPE],
    body: JSON.stringify(body),
  });

const draw = (filename: string, prompt = 'a wall'): Promise<Answer> =>
  post('/mcp', {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'generate-nano-banana', arguments: { prompt, filename } },
  });

/** A picture that is saved as it is. */
const drawDot = async (): Promise<number> => (await draw('dot.png', 'a dot')).status;

const textOf = (answer: Answer): string =>
  toolResultOf(answer)
    .content.map(({ type, text = type }) => text)
    .join(' ');

const lookUp = async (): Promise<number> => (await post('/v1/chat/completions', hello({ model: 'chatty' }))).status;

/** Fails to sign in, as somebody else each time: an e-mail with ten failures is locked. */
async function signIn(): Promise<number> {
  const page = '/oauth/interaction/sign-in';
  const browser = new Browser(server.origin);
  strangers += 1;
  await browser.get(page);
  return (await browser.submit(page, { email: `nobody-${strangers}@example.com`, password: 'not the password' }))
    .status;
}

/** Work over and over for five seconds: the slowest, in milliseconds, and how it ended. */
async function slowest(work: () => Promise<number>): Promise<{ ms: number; statuses: Set<number> }> {
  const statuses = new Set<number>();
  const until = performance.now() + 5000;
  let ms = 0;
  while (performance.now() < until) {
    const startedAt = performance.now();
    statuses.add(await work());
    ms = Math.max(ms, performance.now() - startedAt);
    await sleep(200);
  }
  return { ms, statuses };
}

/** The most memory that the process has had, in bytes. */
const peakMemory = (): number =>
  1024 * Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${server.child.pid}/status`, 'latin1'))?.[1]);

describe.runIf(process.platform === 'linux')('pictures of 49 million pixels', { timeout: 120_000 }, () => {
  /** Someone else's look-ups of names, sign-ins and files, while `busy` goes on. */
  async function others(busy: () => void) {
    await begin({ MAX_BUFFERED_BYTES: String(8192 * MB) });
    await Promise.all([lookUp(), signIn(), drawDot()]);
    busy();
    await sleep(2000);
    const all = await Promise.all([slowest(lookUp), slowest(signIn), slowest(drawDot)]);
    return { statuses: all.map((each) => [...each.statuses]), late: all.map(({ ms }) => ms).filter((ms) => ms > 2000) };
  }

  it('hold up no look-up of a name, no sign-in and no file, however many are decoded for one caller', async () => {
    const found = await others(() => {
      for (let i = 0; i < MANY; i += 1) void draw(`wall-${i}.webp`).catch(() => {});
    });

    expect(found).toEqual({ statuses: [[200], [401], [200]], late: [] });
  });

  it('nor does the sandbox, however many it draws', async () => {
    const large = { model: 'sandbox/sandbox-image-max', prompt: 'a fox', size: '2048x2048', n: 10 };
    const found = await others(() => {
      for (let i = 0; i < MANY; i += 1) void post('/v1/images/generations', large).catch(() => {});
    });

    expect(found).toEqual({ statuses: [[200], [401], [200]], late: [] });
  });

  it('take no more memory than requests may hold, and the caller reads why an image is not saved as asked', async () => {
    await begin();
    const before = peakMemory();
    const texts = (await Promise.all(Array.from({ length: MANY }, () => draw('wall.webp')))).map(textOf);

    const reason = 'The gateway has no room to decode an image of 7000 × 7000 pixels now.';
    const unsaved = `The image was not saved as webp. ${reason}`;
    expect(
      texts.filter((text) => text !== `image ${unsaved}` && text !== `There is no preview. ${reason} ${unsaved}`),
    ).toEqual([]);
    expect(texts).toContain(`image ${unsaved}`);
    expect(peakMemory() - before).toBeLessThan(400 * MB);
  });
});

describe('streams that nobody reads', { timeout: 120_000 }, () => {
  const COUNT = 40;
  const sockets: Socket[] = [];
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
    server.child.kill('SIGKILL');
  });

  /** A process that writes what it holds after each collection of garbage to a file, twice a second. */
  async function beginMeasured(file: string): Promise<void> {
    const script = `import { writeFileSync } from 'node:fs'; import { isMainThread } from 'node:worker_threads';
      if (isMainThread) setInterval(() => { gc(); const { heapUsed, external } = process.memoryUsage();
        writeFileSync(${JSON.stringify(file)}, String(heapUsed + external)); }, 500).unref();`;
    const measure = `--import=data:text/javascript,${encodeURIComponent(script)}`;
    const env = {
      DATA_DIR: dataDir,
      LOG_LEVEL: 'silent',
      ...upstreamEnv('acme', upstream.origin, 'large', 'large=0/0'),
    };
    server = await serveTests(env, ['--expose-gc', measure]);
  }

  async function openUnread(): Promise<void> {
    const body = JSON.stringify(hello({ model: 'large', stream: true }));
    const headers = ['Content-Type: application/json', `Content-Length: ${body.length}`];
    const socket = connect(Number(new URL(server.origin).port), '127.0.0.1').pause();
    socket.on('error', () => {});
    sockets.push(socket);
    await once(socket, 'connect');
    socket.write(head('POST /v1/chat/completions', `Authorization: Bearer ${server.key}`, ...headers) + body);
  }

  it.each([
    ['200 bytes', 200],
    ['64 KB', 64 * 1024],
    ['300 KB', 300 * 1024],
  ])('hold at most 2 MB each, of events of %s', async (_, size) => {
    const file = path.join(uploads, 'memory');
    await beginMeasured(file);
    upstream.begin(async (response) => {
      const left = once(response, 'close');
      const event = chunk({ content: 'x'.repeat(size) });
      while (!response.destroyed) {
        for (let sent = 0; sent < 64 * 1024; sent += size) writeEvents(response, event);
        if (response.writableNeedDrain) await Promise.race([once(response, 'drain'), left]);
      }
    });
    const held = async (): Promise<number> => {
      while (upstream.received.length < sockets.length) await sleep(100);
      await sleep(4000); // What the system takes is full by then.
      return Number(readFileSync(file, 'utf8'));
    };
    await openUnread();
    const before = await held();
    for (let i = 0; i < COUNT; i += 1) await openUnread();

    expect(((await held()) - before) / COUNT).toBeLessThan(2 * MB);
  });
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTransport } from '../../../src/net/transport.ts';
import { googleAdapter } from '../../../src/providers/google/google.ts';
import { startUpstream, type TestUpstream } from '../../support/upstream.ts';
import { parseLarge, sample } from '../answers.ts';
import { chatCall } from '../google-samples.ts';

describe('the Gemini adapter on a real connection', () => {
  let upstream: TestUpstream;
  const transport = createTransport({
    connectTimeoutMs: 5000,
    firstByteTimeoutMs: 5000,
    idleTimeoutMs: 5000,
    totalTimeoutMs: 10_000,
    maxResponseBytes: 1 << 20,
    parseLarge,
  });

  beforeAll(async () => {
    upstream = await startUpstream();
  });

  afterAll(async () => {
    await transport.close();
    await upstream.close();
  });

  async function stream() {
    const endpoint = { base: { origin: upstream.origin, path: '' }, addresses: 'trusted' as const, secret: 'AIzaTest' };
    const request = googleAdapter.buildRequest(chatCall({ stream: true }), endpoint);
    const response = await transport.send(request, {
      signal: AbortSignal.timeout(10_000),
      share: 'org',
      room: () => {},
    });
    if (response.kind !== 'streamed') throw googleAdapter.parseError(response, endpoint.secret);
    return googleAdapter.parseStream(response);
  }

  it('streams an answer to the end', async () => {
    upstream.begin((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(sample('google/stream.sse'));
    });
    let content = '';
    for await (const { choices } of await stream()) content += choices[0]?.delta.content ?? '';
    expect(content).toBe('Größer ist 9,9 – 🎉');
    expect(upstream.received).toEqual([
      {
        path: '/v1beta/models/gemini-3-flash-preview:streamGenerateContent?alt=sse',
        headers: expect.objectContaining({ 'x-goog-api-key': 'AIzaTest', accept: 'text/event-stream' }),
        text: '{"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}',
        json: { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
      },
    ]);
  });

  it('reads an error in the place of a stream', async () => {
    upstream.begin((response) => {
      response.writeHead(429, { 'content-type': 'application/json' });
      response.end(sample('google/error-quota.json'));
    });
    await expect(stream()).rejects.toMatchObject({ errorType: 'rate_limited', status: 429, retryAfterMs: 34_075 });
  });
});

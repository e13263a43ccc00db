import { describe, expect, it } from 'vitest';
import { openAiAdapter } from '../../../src/providers/openai/openai.ts';
import { chunksOf, gathered, readStream, sample, streamed } from '../answers.ts';

const failed = (text: string, status: number) => openAiAdapter.parseError(gathered(text, status), undefined);

/** How an error is read under a success: of a whole answer, of a stream, and of a whole answer where a stream was asked for. */
async function disguised(body: object): Promise<unknown[]> {
  const text = JSON.stringify(body);
  const read: unknown[] = [openAiAdapter.parseError(gathered(text), undefined)];
  try {
    openAiAdapter.parseResponse(gathered(text));
  } catch (error) {
    read.push(error);
  }
  await readStream(streamed(chunksOf(body))).catch((error) => read.push(error));
  return read;
}

describe('an error answer', () => {
  it("stays the caller's own when the conversation is too long", () => {
    expect(failed(sample('openai/context-length.json'), 400)).toMatchObject({
      errorType: 'rejected',
      retryable: false,
      status: 400,
      message:
        "The provider rejected the request: This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    });
  });

  it.each([
    ['openai/quota.json', 429, 402],
    ['xai/wrong-key.json', 400, 401],
  ])('is trouble with the credential: %s under %i', (name, status, meant) => {
    const error = failed(sample(name), status);
    expect(error).toMatchObject({ errorType: 'credential', retryable: true, status: meant });
    expect(error.message).not.toMatch(/quota|xa\*/);
  });

  it.each([
    [{ error: { type: 'exceeded_current_quota_error', message: 'no' } }, 429, 'credential'],
    [{ error: { code: 'invalid_api_key', type: 'invalid_request_error', message: 'no' } }, 400, 'credential'],
    [{ error: { code: 'rate_limit_exceeded', message: 'no' } }, 429, 'rate_limited'],
    [{ error: { code: 'invalid_api_key_format', message: 'no' } }, 400, 'rejected'],
    [{ error: { message: 'no' } }, 498, 'rate_limited'],
  ])('is read by its words: %j under %i', (body, status, errorType) => {
    expect(failed(JSON.stringify(body), status)).toMatchObject({ errorType });
  });

  it('of a reseller tells what the provider behind it said, without credentials', () => {
    expect(failed(sample('openrouter/error.json'), 400).message).toBe(
      'The provider rejected the request: Provider returned error: max_tokens is too large for the key [redacted]',
    );
    const plain = { error: { message: 'Provider returned error', metadata: { raw: 'too long' } } };
    expect(failed(JSON.stringify(plain), 400).message).toMatch(/: Provider returned error: too long$/);
  });

  it('of a validator tells where and what', () => {
    expect(failed(sample('mistral/validation.json'), 422).message).toBe(
      'The provider rejected the request: body.logit_bias: Extra inputs are not permitted; body.messages.0.content: Field required',
    );
  });

  it('carries when to ask again', () => {
    const limited = gathered('{}', 429, { 'retry-after': '7' });
    expect(openAiAdapter.parseError(limited, undefined)).toMatchObject({
      errorType: 'rate_limited',
      retryAfterMs: 7000,
    });
    expect(openAiAdapter.parseError(gathered('{}', 503), undefined).retryAfterMs).toBeUndefined();
  });
});

describe('an error under a success', () => {
  it.each([
    [{ error: { code: 429, message: 'slow down' } }, 'rate_limited', 429],
    [{ error: { code: '503', message: 'busy' } }, 'upstream_error', 503],
    [{ error: { message: 'busy' }, status_code: 500 }, 'upstream_error', 500],
    [{ error: { status: 401, message: 'no' } }, 'credential', 401],
    [{ error: { code: 'insufficient_quota', type: 'insufficient_quota', message: 'no' } }, 'credential', 402],
    [{ error: { type: 'server_error', message: 'no' } }, 'upstream_error', 500],
    [{ object: 'error', type: 'invalid_request_error', message: 'too long', code: 3051 }, 'rejected', 400],
    [{ error: { code: 'weird', message: 'no' } }, 'bad_response', 200],
    [{ error: 'no' }, 'bad_response', 200],
  ])('is read by its own code: %j', async (body, errorType, status) => {
    const read = await disguised(body);
    expect(read).toHaveLength(3);
    for (const error of read) expect(error).toMatchObject({ name: 'UpstreamError', errorType, status });
  });

  it("is passed on where it is the caller's own mistake, and else kept back", async () => {
    const texts = async (code: unknown) =>
      (await disguised({ error: { code, message: 'XYZZY' } })).map((error) => String(error).includes('XYZZY'));
    expect(await texts(400)).toEqual([true, true, true]);
    expect(await texts('context_length_exceeded')).toEqual([true, true, true]);
    for (const code of [401, 402, 403, 429, 500, 'weird', undefined])
      expect(await texts(code)).toEqual([false, false, false]);
  });

  it('is found as the second event of a stream, before anything was said', async () => {
    await expect(readStream(streamed(sample('openai/quota.sse')))).rejects.toMatchObject({
      errorType: 'credential',
      retryable: true,
    });
  });

  it.each([
    ['openrouter/broken.sse', { errorType: 'upstream_error', status: 502 }],
    ['groq/stopped.sse', { errorType: 'bad_response' }],
    ['deepseek/out-of-resources.sse', { errorType: 'upstream_error' }],
  ])('ends a stream that had begun: %s', async (name, wanted) => {
    await expect(readStream(streamed(sample(name)))).rejects.toMatchObject({ ...wanted, retryable: true });
  });

  it('is found in a choice', async () => {
    const choice = { index: 0, finish_reason: 'error', error: { code: 429, message: 'no' } };
    const whole = { choices: [{ ...choice, message: { role: 'assistant', content: '' } }] };
    const wanted = { errorType: 'rate_limited', status: 429 };
    expect(() => openAiAdapter.parseResponse(gathered(JSON.stringify(whole)))).toThrow(expect.objectContaining(wanted));
    const chunk = { choices: [{ ...choice, delta: { content: '' } }] };
    await expect(readStream(streamed(chunksOf(chunk)))).rejects.toMatchObject(wanted);
  });

  it.each(['error', 'ERROR', 'insufficient_system_resource'])('is what the end `%s` means', (finish_reason) => {
    const choice = { index: 0, message: { role: 'assistant', content: 'a' }, finish_reason };
    expect(() => openAiAdapter.parseResponse(gathered(JSON.stringify({ choices: [choice] })))).toThrow(
      expect.objectContaining({ errorType: 'upstream_error', retryable: true }),
    );
  });
});

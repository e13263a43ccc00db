import { describe, expect, it } from 'vitest';
import { TransportError, timeoutError, toTransportError } from '../../../src/net/transport-error.ts';
import { openAiAdapter } from '../../../src/providers/openai/openai.ts';
import { causeOf, explainCause, fromTransportError, scrub } from '../../../src/providers/wire/upstream-error.ts';
import { gathered } from '../answers.ts';

const SECRET = 'operator-secret-1';

const said = (status: number, message: string) =>
  openAiAdapter.parseError(gathered(JSON.stringify({ error: { message } }), status), SECRET);

describe('parseError', () => {
  it.each([
    [400, 'rejected', false],
    [401, 'credential', true],
    [402, 'credential', true],
    [403, 'credential', true],
    [404, 'upstream_error', true],
    [408, 'timeout', true],
    [409, 'upstream_error', true],
    [413, 'rejected', false],
    [422, 'rejected', false],
    [429, 'rate_limited', true],
    [500, 'upstream_error', true],
    [503, 'upstream_error', true],
    [529, 'upstream_error', true],
    [302, 'bad_response', true],
  ])('reads status %i as %s', (status, errorType, retryable) => {
    expect(said(status, 'no')).toMatchObject({ name: 'UpstreamError', status, errorType, retryable });
  });

  it.each([401, 402, 403])('forwards no word of a %i', (status) => {
    expect(said(status, 'XYZZY is wrong').message).not.toContain('XYZZY');
  });

  it.each([
    ['{"error":{"message":"too long"}}'],
    ['{"error":"too long"}'],
    ['{"message":"too long"}'],
    ['{"detail":"too long"}'],
  ])('finds the text in %s', (text) => {
    const error = openAiAdapter.parseError(gathered(text, 400), undefined);
    expect(error.message).toBe('The provider rejected the request: too long');
  });

  it.each(['<html>nginx</html>', '', '[]', '{"error":{"message":7}}'])(
    'says the status where %j holds no text',
    (text) => {
      const error = openAiAdapter.parseError(gathered(text, 503), undefined);
      expect(error.message).toBe('The provider failed: status 503');
    },
  );

  it('takes the secret of the call out of the text', () => {
    expect(said(400, `header ${SECRET} is odd`).message).toBe(
      'The provider rejected the request: header [redacted] is odd',
    );
  });

  it('reads a success that is no stream, where one was asked for, as a bad response', () => {
    expect(openAiAdapter.parseError(gathered('{}'), undefined)).toMatchObject({
      errorType: 'bad_response',
      status: 200,
    });
  });
});

describe('scrub', () => {
  it.each([
    'sk-proj-abcdefGHIJKL123456',
    'sk-****abcd',
    'pcl_0123456789abcdef',
    'Bearer abc.def.ghi',
    'bearer abcdefgh',
    'AIzaSyA1234567890abcdef',
    'AKIAIOSFODNN7EXAMPLE',
    'gsk_abcdefgh1234',
    'hf_abcdefgh1234',
    'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc',
    '0123456789abcdef0123456789abcdef',
    'aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF',
    'api_key=hunter22',
    '"token": "hunter22"',
    'https://user:pass@host/',
  ])('takes %s out', (credential) => {
    const text = scrub(`before ${credential} after`);
    expect(text).toMatch(/^before .*\[redacted\].* after$/);
    expect(text).not.toContain(credential);
    expect(text).not.toContain('hunter22');
  });

  it.each([
    "This model's maximum context length is 8192 tokens, however you requested 9000 tokens.",
    'The model claude-3-5-sonnet-20241022 does not support images.',
    "Invalid value: 'foo'. Supported values are: 'system', 'assistant', 'user'.",
    'tool_call_id call_abc123 of messages[3] not found',
  ])('leaves %s', (text) => expect(scrub(text)).toBe(text));

  it('leaves no part of the secret where a long text is cut', () => {
    const removed = `sk-${'a'.repeat(4076)} `;
    const text = scrub(`${removed}says correct-horse-battery-staple is wrong`, 'correct-horse-battery-staple');
    expect(text).toBe('[redacted] says [redacted]');
  });

  it('makes one bounded line of well-formed text', () => {
    expect(scrub('a\r\nb\u0000\u001b[31mc')).toBe('a b [31mc');
    expect(scrub('word '.repeat(100_000)).length).toBe(1001);
    expect(scrub('x\ud800').isWellFormed()).toBe(true);
  });
});

describe('fromTransportError', () => {
  it.each([
    [new TransportError('connection', 'reset'), 'connection', true],
    [timeoutError('connect', false), 'timeout', true],
    [timeoutError('first_byte', true), 'timeout', true],
    [timeoutError('idle', true), 'timeout', true],
    [timeoutError('total', true), 'timeout', false],
    [new TransportError('too_large', 'x'), 'bad_response', true],
    [new TransportError('bad_response', 'x'), 'bad_response', true],
    [new TransportError('aborted', 'x'), 'connection', false],
  ])('reads %s as %s, retryable %s', (error, errorType, retryable) => {
    expect(fromTransportError(error)).toMatchObject({ errorType, retryable, cause: error });
  });
});

const system = (code: string, cause?: unknown): Error => Object.assign(new Error('it failed', { cause }), { code });

describe('causeOf', () => {
  it.each([
    [system('ENOTFOUND'), 'unknown_host'],
    [system('EAI_AGAIN'), 'name_look_up_failed'],
    [system('ENETUNREACH'), 'unreachable'],
    [system('UND_ERR_SOCKET', system('ECONNRESET')), 'connection_reset'],
    [new AggregateError([system('ECONNREFUSED'), system('ECONNREFUSED')]), 'connection_refused'],
    [system('UNABLE_TO_VERIFY_LEAF_SIGNATURE'), 'tls_untrusted'],
    [system('ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION'), 'tls_failed'],
    [system('UND_ERR_CONNECT_TIMEOUT'), 'connect_timeout'],
    [new TransportError('connection', 'the address is not public'), 'address_refused'],
    [new Error('something else'), 'connection_failed'],
  ])('reads %o as %s', (error, cause) => {
    expect(causeOf(fromTransportError(toTransportError(error)))).toBe(cause);
    expect(explainCause(cause)).toMatch(/^[A-Z].*\.$/);
  });

  it.each([
    ['', 'wrong_path'],
    ['404 page not found', 'wrong_path'],
    ['Not Found', 'wrong_path'],
    ['Invalid URL (POST /chat/completions)', 'wrong_path'],
    ['The model `x` does not exist.', 'model_unknown'],
    ['models/x is not found for API version v1beta', 'model_unknown'],
    ['model "x" not found, try pulling it first', 'model_unknown'],
  ])('reads a 404 that says "%s" as %s', (text, cause) => expect(causeOf(said(404, text))).toBe(cause));

  it('reads no property of all objects as a code', () => expect(explainCause('constructor')).toBeUndefined());
});

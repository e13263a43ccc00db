import { describe, expect, it } from 'vitest';
import { anthropicAdapter } from '../../../src/providers/anthropic/anthropic.ts';
import { gathered } from '../answers.ts';

const SECRET = 'sk-ant-api03-abcdef';

const parse = (status: number, error: unknown, headers = {}) =>
  anthropicAdapter.parseError(
    gathered(JSON.stringify({ type: 'error', error, request_id: 'req_1' }), status, headers),
    SECRET,
  );

const PAYMENT = 'The provider asks for payment on the credential in use.';

describe('parseError', () => {
  it.each([
    [400, 'invalid_request_error', 'rejected', false, 'The provider rejected the request: Said.'],
    [401, 'authentication_error', 'credential', true, "The provider refused the gateway's credential."],
    [402, 'billing_error', 'credential', true, PAYMENT],
    [403, 'permission_error', 'credential', true, "The provider refused the gateway's credential."],
    [404, 'not_found_error', 'upstream_error', true, 'The provider does not know the model.'],
    [413, 'request_too_large', 'rejected', false, 'The provider rejected the request: Said.'],
    [429, 'rate_limit_error', 'rate_limited', true, 'The provider limits the rate of calls: Said.'],
    [500, 'api_error', 'upstream_error', true, 'The provider failed: Said.'],
    [529, 'overloaded_error', 'upstream_error', true, 'The provider failed: Said.'],
  ])('reads %i %s as %s', (status, type, errorType, retryable, message) => {
    const error = parse(status, { type, message: 'Said.' });
    expect(error).toMatchObject({ name: 'UpstreamError', status, errorType, retryable, message });
  });

  it.each([
    [400, 'invalid_request_error', 'Your credit balance is too low to access the Anthropic API.'],
    [400, 'invalid_request_error', 'You have reached your specified API usage limits.'],
    [403, 'billing_error', 'Said.'],
  ])('reads %i %s "%s" as a matter of the credential’s account, without its text', (status, type, said) => {
    const error = parse(status, { type, message: said });
    expect(error).toMatchObject({ status: 402, errorType: 'credential', retryable: true, message: PAYMENT });
  });

  it('lets no credential through, and keeps what the provider asks us to wait', () => {
    const error = parse(429, { type: 'rate_limit_error', message: `Key ${SECRET} is busy` }, { 'retry-after': '7' });
    expect(error).toMatchObject({
      message: 'The provider limits the rate of calls: Key [redacted] is busy',
      retryAfterMs: 7000,
    });
  });

  it.each(['<html>Bad gateway</html>', '', '[]', '{"error":"x"}', '{"error":{"message":5}}'])(
    'reads the text %j by its status alone',
    (body) => {
      const error = anthropicAdapter.parseError(gathered(body, 502), SECRET);
      expect(error).toMatchObject({ errorType: 'upstream_error', message: 'The provider failed: status 502' });
    },
  );

  it('reads an answer that is whole where a stream was asked for as a bad one, and an error in it as that', () => {
    expect(anthropicAdapter.parseError(gathered('{"type":"message"}'), SECRET)).toMatchObject({
      errorType: 'bad_response',
      message: 'The provider did not answer with a stream.',
    });
    const body = JSON.stringify({ type: 'error', error: { type: 'rate_limit_error', message: 'Slow down' } });
    expect(anthropicAdapter.parseError(gathered(body), SECRET)).toMatchObject({
      errorType: 'rate_limited',
      status: 429,
    });
  });
});

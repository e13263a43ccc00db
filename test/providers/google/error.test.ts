import { describe, expect, it } from 'vitest';
import { googleAdapter } from '../../../src/providers/google/google.ts';
import { gathered, sample } from '../answers.ts';

const SECRET = 'AIzaTest';
const parse = (text: string, status: number) => googleAdapter.parseError(gathered(text, status), SECRET);
const error = (code: number, status: string, message: string, more: object = {}) =>
  JSON.stringify({ error: { code, status, message, ...more } });

describe('parseError', () => {
  it('reads a key that is not valid, which Google calls a bad request, as a credential, and shows nothing of it', () => {
    expect(parse(sample('google/error-key.json'), 400)).toMatchObject({
      errorType: 'credential',
      retryable: true,
      status: 401,
      message: "The provider refused the gateway's credential.",
    });
  });

  it('reads a used up quota in a list, with the wait that it asks for', () => {
    expect(parse(sample('google/error-quota.json'), 429)).toMatchObject({
      errorType: 'rate_limited',
      retryable: true,
      status: 429,
      retryAfterMs: 34_075,
      message: 'The provider limits the rate of calls: The quota of requests per minute is used up.',
    });
  });

  it('prefers the wait of the header', () => {
    const response = { ...gathered(sample('google/error-quota.json'), 429), headers: { 'retry-after': '2' } };
    expect(googleAdapter.parseError(response, SECRET).retryAfterMs).toBe(2000);
  });

  it.each([
    [400, 'INVALID_ARGUMENT', 'Bad.', 'rejected', false, 'The provider rejected the request: Bad.'],
    [400, 'FAILED_PRECONDITION', 'Bill.', 'credential', true, "The provider refused the gateway's credential."],
    [401, 'UNAUTHENTICATED', 'Key x', 'credential', true, "The provider refused the gateway's credential."],
    [403, 'PERMISSION_DENIED', 'Key x', 'credential', true, "The provider refused the gateway's credential."],
    [404, 'NOT_FOUND', 'No x', 'upstream_error', true, 'The provider does not know the model.'],
    [499, 'CANCELLED', 'Gone.', 'upstream_error', true, 'The provider failed: Gone.'],
    [500, 'INTERNAL', 'Oops.', 'upstream_error', true, 'The provider failed: Oops.'],
    [503, 'UNAVAILABLE', 'Busy.', 'upstream_error', true, 'The provider failed: Busy.'],
    [504, 'DEADLINE_EXCEEDED', 'Slow.', 'upstream_error', true, 'The provider failed: Slow.'],
  ])('reads %d %s', (code, status, text, errorType, retryable, message) => {
    expect(parse(error(code, status, text), code)).toMatchObject({ errorType, retryable, message });
  });

  it('scrubs the text of the key that was sent and of anything that looks like one', () => {
    const text = error(400, 'INVALID_ARGUMENT', `No ${SECRET}, no AIzaSyA-1234567890abcdefghijklmnopq.`);
    expect(parse(text, 400).message).toBe('The provider rejected the request: No [redacted], no [redacted].');
  });

  it.each(['', '<html>', '[]', '{"error":"x"}', '{"error":{"message":7}}'])(
    'reads the body %j by its status',
    (text) => {
      expect(parse(text, 500).message).toBe('The provider failed: status 500');
    },
  );

  it('reads a whole answer where a stream was asked for as a bad response', () => {
    expect(parse(sample('google/answer.json'), 200)).toMatchObject({ errorType: 'bad_response', retryable: true });
  });
});

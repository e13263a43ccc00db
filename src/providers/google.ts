import { randomUUID } from 'node:crypto';
import type { Adapter } from './adapter.ts';
import { parseAnswer } from './google-answer.ts';
import type { NewCallId } from './google-candidate.ts';
import { parseError } from './google-error.ts';
import { googleImages } from './google-images.ts';
import { dropped, unsupported } from './google-options.ts';
import { buildRequest } from './google-request.ts';
import { parseStream } from './google-stream.ts';
import { googleUsage } from './google-usage.ts';
import { record } from './json.ts';

/** The adapter for Google's Gemini API (`generateContent`); ids for tool calls that come without one are made by `newCallId`. */
export const createGoogleAdapter = (newCallId: NewCallId): Adapter => ({
  unsupported,
  dropped,
  buildRequest,
  parseResponse: (response) => parseAnswer(response, newCallId),
  parseStream: (response) => parseStream(response, newCallId),
  reportedUsage: (answer) => googleUsage(record(answer).usageMetadata, undefined, { images: 0, queries: new Set() }),
  parseError,
  images: googleImages,
});

export const googleAdapter: Adapter = createGoogleAdapter(() => `call_${randomUUID().replaceAll('-', '')}`);

import { randomUUID } from 'node:crypto';
import type { Adapter } from '../wire/adapter.ts';
import { record } from '../wire/fields.ts';
import { googleUsage, type NewCallId, parseAnswer } from './answer.ts';
import { parseError } from './error.ts';
import { googleImages } from './images.ts';
import { buildRequest, dropped, unsupported } from './request.ts';
import { parseStream } from './stream.ts';

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

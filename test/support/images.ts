import type { ImageAnswer, ModerationAnswer } from '../../src/generated/types.ts';
import { validator } from '../../src/lib/schemas.ts';
import { bearer, type ChatOptions, JSON_TYPE, post } from './chat.ts';
import type { TestGateway } from './gateway.ts';
import type { Answer } from './request.ts';
import type { Reply } from './upstream.ts';
import { json } from './upstream.ts';

const validateImageAnswer = validator('ImageAnswer');
const validateModerationAnswer = validator('ModerationAnswer');

const operation =
  (path: string) =>
  (gateway: TestGateway, body: unknown, options: ChatOptions = {}): Promise<Answer> => {
    const { token = gateway.firstRun.gatewayKey, headers = [] } = options;
    return post(gateway, JSON.stringify(body), [bearer(token), JSON_TYPE, ...headers], { path });
  };

/** Posts an image request with the first key. */
export const draw = operation('/v1/images/generations');

/** Posts a moderation request with the first key. */
export const moderate = operation('/v1/moderations');

/** A small picture of the sandbox. */
export const fox = (more: object = {}): object => ({ prompt: 'a red fox', size: '64x32', ...more });

/** The answer as one of our own schema. */
export function imagesOf({ status, json: body, text }: Answer): ImageAnswer {
  if (status === 200 && validateImageAnswer(body)) return body;
  throw new Error(`no image answer: ${status} ${text} ${JSON.stringify(validateImageAnswer.errors)}`);
}

export function moderationOf({ status, json: body, text }: Answer): ModerationAnswer {
  if (status === 200 && validateModerationAnswer(body)) return body;
  throw new Error(`no moderation answer: ${status} ${text} ${JSON.stringify(validateModerationAnswer.errors)}`);
}

/** Width and height of a PNG in base64. */
export function pngSize(base64 = ''): [width: number, height: number] {
  const file = Buffer.from(base64, 'base64');
  if (file.toString('latin1', 1, 4) !== 'PNG') throw new Error('not a PNG');
  return [file.readUInt32BE(16), file.readUInt32BE(20)];
}

/** An upstream's answer to an image request. */
export const pictured = (more: object = {}): Reply => json({ created: 1, data: [{ b64_json: 'aGk=' }], ...more });

/** An upstream's answer to a moderation request of so many inputs. */
export const judged = (inputs = 1): Reply =>
  json({
    id: 'modr-upstream',
    model: 'upstream-moderation-2026',
    results: Array.from({ length: inputs }, () => ({
      flagged: true,
      categories: { violence: true },
      category_scores: { violence: 0.9 },
    })),
  });

import type { ModerationRequest, ModerationResult } from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import type { GatheredResponse } from '../../net/exchange.ts';
import type { OutboundRequest } from '../../net/transport.ts';
import type { Endpoint, ModerationCall, UpstreamModeration, WholeTranslation } from '../wire/adapter.ts';
import { isRecord, modelId } from '../wire/fields.ts';
import { badResponse } from '../wire/upstream-error.ts';
import { openAiAnswer } from './answer.ts';
import { openAiPost } from './request.ts';

const validateModerationResult = validator('ModerationResult');

/** Moderation at every server that speaks OpenAI's wire format. */
export const openAiModerations: WholeTranslation<ModerationCall, UpstreamModeration> = { buildRequest, parseResponse };

function buildRequest({ request, mapping }: ModerationCall, endpoint: Endpoint): OutboundRequest {
  return openAiPost('/moderations', { ...request, model: mapping.externalId }, endpoint);
}

function parseResponse({ text }: GatheredResponse, { request }: ModerationCall, secret?: string): UpstreamModeration {
  const { model, results } = openAiAnswer(text, secret);
  if (!Array.isArray(results)) throw badResponse('The provider sent a malformed answer.');
  // A verdict too few or too many would be read as one on another input.
  if (results.length !== countInputs(request)) throw badResponse('The provider did not judge every input once.');
  return { model: modelId(model), results: results.map(parseResult) };
}

/** Each text of a list is one input; a list with a part in it is one as a whole. */
const countInputs = ({ input }: ModerationRequest): number =>
  Array.isArray(input) && input.every((item) => typeof item === 'string') ? input.length : 1;

/** A verdict; some servers leave `flagged` to be read from the categories. */
function parseResult(item: unknown): ModerationResult {
  const result = isRecord(item) && item.flagged === undefined ? { ...item, flagged: isAnyFlagged(item) } : item;
  if (validateModerationResult(result)) return result;
  throw badResponse('The provider sent a malformed verdict.');
}

const isAnyFlagged = ({ categories }: Readonly<Record<string, unknown>>): boolean =>
  isRecord(categories) && Object.values(categories).includes(true);

import type { GatheredResponse } from '../../net/exchange.ts';
import type { UpstreamCompletion } from '../wire/adapter.ts';
import { modelId } from '../wire/json.ts';
import { badResponse } from '../wire/upstream-error.ts';
import { normaliseChoice } from './choice.ts';
import { reportedUsage } from './usage.ts';
import { openAiAnswer } from './whole.ts';

/** More choices than any request may ask for. */
export const MAX_CHOICES = 128;

/** What the gateway writes itself, or reads; and what must not become a prototype. */
const READ: ReadonlySet<string> = new Set([
  'id',
  'object',
  'created',
  'metadata',
  'model',
  'choices',
  'usage',
  'error',
  '__proto__',
]);

/** Every other top-level field of an answer or a chunk. */
export function otherFields(answer: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const name of Object.keys(answer)) if (!READ.has(name)) fields[name] = answer[name];
  return fields;
}

/** A whole answer. @throws UpstreamError */
export function parseCompletion({ text }: GatheredResponse, secret?: string): UpstreamCompletion {
  const answer = openAiAnswer(text, secret);
  const { model, choices } = answer;
  if (!Array.isArray(choices) || choices.length === 0) throw badResponse('The provider sent an empty answer.');
  boundChoices(choices);
  return {
    model: modelId(model),
    choices: choices.map((choice: unknown, position) => normaliseChoice(choice, position, secret)),
    usage: reportedUsage(answer),
    fields: otherFields(answer),
  };
}

/** @throws UpstreamError `bad_response` */
export function boundChoices(choices: readonly unknown[]): void {
  if (choices.length > MAX_CHOICES) throw badResponse('The provider sent too many choices.');
}

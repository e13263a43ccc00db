import type { JsonText, WrittenAnswer } from '../../core/call/written-answer.ts';
import { invalidRequest } from '../../domain/errors.ts';
import type { AppContext } from '../state.ts';

/** How `metadata` is written: as the specification has it, or, for SDKs that type it so, with every value a string. */
export type MetadataForm = 'object' | 'strings';

/** What the caller asks for by the header `x-metadata-form`, else what is configured. @throws ApiError 400 for another word */
export function metadataForm({ req }: Pick<AppContext, 'req'>, configured: MetadataForm): MetadataForm {
  const asked = req.headers['x-metadata-form'];
  if (asked === undefined) return configured;
  if (asked === 'object' || asked === 'strings') return asked;
  throw invalidRequest('The header x-metadata-form must be object or strings.');
}

/** An answer, or a chunk of one, with its `metadata` in a form. Lists become JSON text. */
export function inForm<T extends { readonly metadata?: object }>(answer: T, form: MetadataForm): object {
  const { metadata } = answer;
  if (form === 'object' || metadata === undefined) return answer;
  const strings = Object.entries(metadata).map(([name, value]) => [
    name,
    typeof value === 'object' ? JSON.stringify(value) : String(value),
  ]);
  return { ...answer, metadata: Object.fromEntries(strings) };
}

/** The same of what is written already but for the gateway's fields. */
export const writtenInForm = (answer: WrittenAnswer<{ readonly metadata?: object }>, form: MetadataForm): JsonText =>
  answer.json(inForm(answer.ours, form));

import type { ResponseFormat } from '../../generated/types.ts';
import { type Block, textBlocks } from './block.ts';
import type { ModelRules } from './model.ts';
import { structuredSchema } from './schema.ts';

/** The tool that a model without structured outputs must call with its answer: its input becomes the content. */
export const ANSWER_TOOL = 'structured_answer_for_gateway';

/** How the form of the answer is asked for. */
export interface AnswerFormat {
  /** For `output_config.format`. */
  readonly format?: Readonly<Record<string, unknown>>;
  /** Where the model has no structured outputs. */
  readonly tool?: Readonly<Record<string, unknown>>;
  /** To go behind the system messages. */
  readonly instruction: readonly Block[];
}

const JSON_ONLY = 'Answer with one valid JSON object and nothing else: no words around it, no code fence.';

/** A schema is enforced; an object without one is only asked for, because the API has nothing that enforces it. */
export function answerFormat(wanted: ResponseFormat | undefined, { structuredOutputs }: ModelRules): AnswerFormat {
  const schema = wanted?.json_schema?.schema;
  if (wanted?.type === 'json_schema' && schema != null) {
    if (structuredOutputs)
      return { format: { type: 'json_schema', schema: structuredSchema(schema) }, instruction: [] };
    const description = wanted.json_schema?.description ?? 'Gives the answer.';
    return { tool: { name: ANSWER_TOOL, description, input_schema: { type: 'object', ...schema } }, instruction: [] };
  }
  const json = wanted?.type === 'json_object' || wanted?.type === 'json_schema';
  return { instruction: json ? textBlocks(JSON_ONLY) : [] };
}

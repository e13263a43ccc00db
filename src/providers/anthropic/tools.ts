import type { ChatRequest, ChatTool, FunctionDefinition, ResponseFormat, ToolChoice } from '../../generated/types.ts';
import { type Fields, isRecord, MAX_SEARCHES } from '../wire/fields.ts';
import { type Block, cacheControl, textBlocks } from './messages.ts';
import type { ModelRules } from './thinking.ts';

interface ToolFields {
  readonly tools?: readonly Fields[];
  readonly tool_choice?: Fields;
}

interface ToolOptions {
  /** See `AnswerFormat`: called in place of an answer in words. */
  readonly answerTool: Fields | undefined;
  /** False: a choice that forces a call is `auto`, because the API refuses it while the model thinks, or always. */
  readonly forceable: boolean;
}

/** The caller's tools and choice. */
export function toolFields(
  request: ChatRequest,
  rules: ModelRules,
  { answerTool, forceable }: ToolOptions,
): ToolFields {
  const choice = request.tool_choice ?? oldChoice(request.function_call);
  const allowed = allowedNames(choice);
  const own = [
    ...(request.tools ?? []).map((tool) => toolOf(tool, rules)),
    ...(request.functions ?? []).map((definition) => functionTool(definition, undefined, rules)),
  ].filter(({ name }) => allowed === undefined || allowed.has(name));
  const tools = answerTool === undefined ? own : [...own, answerTool];
  if (tools.length === 0) return {};
  const wanted = answerTool === undefined ? choiceOf(choice) : withAnswer(choiceOf(choice), answerTool, own.length);
  const forced = wanted?.type === 'any' || wanted?.type === 'tool';
  const sent = forced && !forceable ? { type: 'auto' } : wanted;
  if (request.parallel_tool_calls !== false || sent?.type === 'none') {
    return sent === undefined ? { tools } : { tools, tool_choice: sent };
  }
  return { tools, tool_choice: { type: 'auto', ...sent, disable_parallel_tool_use: true } };
}

function toolOf(tool: ChatTool, rules: ModelRules): Fields {
  if (tool.function !== undefined) return functionTool(tool.function, tool.cache_control, rules);
  const { type, name = 'web_search', max_uses: uses, ...rest } = tool;
  return { type, name, max_uses: uses ?? MAX_SEARCHES, ...rest };
}

function functionTool(definition: FunctionDefinition, cache: ChatTool['cache_control'], rules: ModelRules): Fields {
  const { name, description, parameters, strict } = definition;
  const schema = { type: 'object', ...(parameters ?? { properties: {} }) };
  const enforced = strict === true && rules.structuredOutputs;
  return {
    name,
    ...(description == null ? {} : { description }),
    input_schema: enforced ? structuredSchema(schema) : schema,
    ...cacheControl(cache ?? definition.cache_control),
    ...(strict != null && rules.structuredOutputs ? { strict } : {}),
  };
}

function oldChoice(call: ChatRequest['function_call']): ToolChoice | undefined {
  if (call == null || typeof call === 'string') return call;
  return call.name === undefined ? undefined : { type: 'function', function: { name: call.name } };
}

/** The names of an `allowed_tools` choice; undefined for any other choice. */
function allowedNames(choice: ToolChoice | undefined): ReadonlySet<unknown> | undefined {
  if (choice == null || typeof choice === 'string' || choice.type !== 'allowed_tools') return undefined;
  const list = choice.allowed_tools?.tools;
  const names = (Array.isArray(list) ? list : []).map((tool: unknown) =>
    isRecord(tool) && isRecord(tool.function) ? tool.function.name : undefined,
  );
  return new Set(names);
}

function choiceOf(choice: ToolChoice | undefined): Fields | undefined {
  if (choice == null) return undefined;
  const word = typeof choice === 'string' ? choice : choice.type;
  if (typeof choice !== 'string' && word === 'allowed_tools') {
    return choiceOf(choice.allowed_tools?.mode === 'required' ? 'required' : 'auto');
  }
  if (typeof choice !== 'string' && word === 'function' && choice.function !== undefined) {
    return { type: 'tool', name: choice.function.name };
  }
  if (word === 'none' || word === 'auto') return { type: word };
  if (word === 'required') return { type: 'any' };
  return undefined;
}

/** The model must call something: one of the caller's tools where it may, else the one that takes the answer. */
function withAnswer(choice: Fields | undefined, answerTool: Fields, ownTools: number): Fields {
  if (choice?.type === 'tool') return choice;
  return ownTools === 0 || choice?.type === 'none' ? { type: 'tool', name: answerTool.name } : { type: 'any' };
}

/** The tool that a model without structured outputs must call with its answer: its input becomes the content. */
export const ANSWER_TOOL = 'structured_answer_for_gateway';

/** Request for the form of the answer. */
interface AnswerFormat {
  /** For `output_config.format`. */
  readonly format?: Readonly<Record<string, unknown>>;
  /** Tool for models without structured outputs. */
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

type Schema = Readonly<Record<string, unknown>>;

/** Keywords that structured outputs take as they are; those that hold schemas are treated on their own. */
const KEPT: ReadonlySet<string> = new Set([
  '$ref',
  'type',
  'title',
  'description',
  'enum',
  'const',
  'default',
  'required',
  'pattern',
]);

const FORMATS: ReadonlySet<unknown> = new Set([
  'date-time',
  'time',
  'date',
  'duration',
  'email',
  'hostname',
  'uri',
  'ipv4',
  'ipv6',
  'uuid',
]);

/** Without a meaning for what the model writes. */
const DROPPED: ReadonlySet<string> = new Set(['$schema', '$id', '$comment', 'examples', 'additionalProperties']);

/**
 * A JSON Schema within the subset that the API's structured outputs take; anything else in one is a 400. Objects are closed, as
 * the API demands, and a constraint that it cannot enforce goes into the description for the model.
 */
function structuredSchema(schema: Schema): Schema {
  const keeps: [string, unknown][] = [];
  const tells: [string, unknown][] = [];
  for (const [keyword, value] of Object.entries(schema)) {
    const nested = nestedSchemas(keyword, value);
    if (nested !== undefined) keeps.push([keyword === 'oneOf' ? 'anyOf' : keyword, nested]);
    else if (isTaken(keyword, value)) keeps.push([keyword, value]);
    else if (!DROPPED.has(keyword)) tells.push([keyword, value]);
  }
  const kept: Record<string, unknown> = Object.fromEntries(keeps);
  if (describesObject(schema)) kept.additionalProperties = false;
  if (tells.length > 0) {
    const text = `Must also satisfy: ${JSON.stringify(Object.fromEntries(tells))}`;
    kept.description = typeof kept.description === 'string' ? `${kept.description}\n${text}` : text;
  }
  return kept;
}

function isTaken(keyword: string, value: unknown): boolean {
  if (keyword === 'format') return FORMATS.has(value);
  if (keyword === 'minItems') return value === 0 || value === 1;
  return KEPT.has(keyword);
}

/** The value of a keyword that holds schemas, treated in turn; undefined for any other keyword. */
function nestedSchemas(keyword: string, value: unknown): unknown {
  switch (keyword) {
    case 'properties':
    case '$defs':
    case 'definitions':
      return isRecord(value) ? mapValues(value) : undefined;
    case 'items':
      return isRecord(value) ? structuredSchema(value) : undefined;
    case 'anyOf':
    case 'oneOf':
    case 'allOf':
      return Array.isArray(value) ? value.map(structured) : undefined;
    default:
      return undefined;
  }
}

const structured = (value: unknown): unknown => (isRecord(value) ? structuredSchema(value) : value);

/** A property may be named `__proto__`: entries keep it an own one. */
const mapValues = (schemas: Schema): unknown =>
  Object.fromEntries(Object.entries(schemas).map(([name, value]) => [name, structured(value)]));

function describesObject({ type, properties }: Schema): boolean {
  return type === 'object' || (Array.isArray(type) && type.includes('object')) || isRecord(properties);
}

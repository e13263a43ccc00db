import type { ChatRequest, ChatTool, FunctionDefinition, ToolChoice } from '../../generated/types.ts';
import { isRecord } from '../wire/json.ts';
import { MAX_SEARCHES } from '../wire/request-fields.ts';
import { cacheControl } from './block.ts';
import type { ModelRules } from './model.ts';
import { structuredSchema } from './schema.ts';

type Fields = Readonly<Record<string, unknown>>;

export interface ToolFields {
  readonly tools?: readonly Fields[];
  readonly tool_choice?: Fields;
}

export interface ToolOptions {
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

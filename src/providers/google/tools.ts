import type { ChatRequest, FunctionDefinition, ToolChoice } from '../../generated/types.ts';
import { isRecord, record } from '../wire/json.ts';
import { toGoogleSchema } from './schema.ts';

type Fields = Readonly<Record<string, unknown>>;

function toDeclaration({ name, description, parameters }: FunctionDefinition): Fields {
  const declaration: Record<string, unknown> = { name };
  if (typeof description === 'string') declaration.description = description;
  if (isRecord(parameters) && Object.keys(parameters).length > 0) {
    declaration.parametersJsonSchema = toGoogleSchema({ type: 'object', ...parameters });
  }
  return declaration;
}

const only = (mode: string, allowedFunctionNames: readonly string[]): Fields => ({ mode, allowedFunctionNames });

/** The functions that `allowed_tools` lists. */
function allowedNames(allowed: Fields): string[] {
  const tools = Array.isArray(allowed.tools) ? allowed.tools : [];
  return tools.flatMap((tool: unknown) => {
    const { name } = record(record(tool).function);
    return typeof name === 'string' ? [name] : [];
  });
}

/** `VALIDATED` is the mode that leaves the model free to call none of the functions it is limited to. */
function callingConfig(choice: NonNullable<ToolChoice>): Fields | undefined {
  if (choice === 'auto') return { mode: 'AUTO' };
  if (choice === 'none') return { mode: 'NONE' };
  if (choice === 'required') return { mode: 'ANY' };
  if (typeof choice === 'string') return undefined;
  if (choice.type === 'function' && choice.function !== undefined) return only('ANY', [choice.function.name]);
  if (choice.type === 'allowed_tools') {
    const allowed = record(choice.allowed_tools);
    return only(allowed.mode === 'required' ? 'ANY' : 'VALIDATED', allowedNames(allowed));
  }
  return undefined;
}

/** `tools` and `toolConfig`; `web_search_options` asks for Google's own search. */
export function toToolFields(request: ChatRequest): Fields {
  const functionDeclarations = (request.tools ?? []).flatMap((tool) =>
    tool.function === undefined ? [] : [toDeclaration(tool.function)],
  );
  const tools: Fields[] = functionDeclarations.length === 0 ? [] : [{ functionDeclarations }];
  if (isRecord(request.web_search_options)) tools.push({ googleSearch: {} });
  if (tools.length === 0) return {};
  const { tool_choice: choice } = request;
  const config =
    choice === null || choice === undefined || functionDeclarations.length === 0 ? undefined : callingConfig(choice);
  return config === undefined ? { tools } : { tools, toolConfig: { functionCallingConfig: config } };
}

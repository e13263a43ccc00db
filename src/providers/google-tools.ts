import type { ChatRequest, ChatTool, ToolChoice } from '../generated/types.ts';
import { toGoogleSchema } from './google-schema.ts';
import { isRecord, record } from './json.ts';
import { notTakenByProvider } from './upstream-error.ts';

type Fields = Readonly<Record<string, unknown>>;

function toDeclaration(tool: ChatTool): Fields {
  if (tool.type !== 'function' || tool.function === undefined) {
    throw notTakenByProvider('This provider takes tools of type function only.');
  }
  const { name, description, parameters } = tool.function;
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
  throw notTakenByProvider('This provider does not take such a tool choice.');
}

/**
 * `tools` and `toolConfig`; `web_search_options` asks for Google's own search.
 * @throws UpstreamError for tools that are no functions, and for the old `functions`: the answer would not be in their form
 */
export function toToolFields(request: ChatRequest): Fields {
  if (Array.isArray(request.functions) && request.functions.length > 0) {
    throw notTakenByProvider('This provider takes tools, not functions.');
  }
  const functionDeclarations = (request.tools ?? []).map(toDeclaration);
  const tools: Fields[] = functionDeclarations.length === 0 ? [] : [{ functionDeclarations }];
  if (isRecord(request.web_search_options)) tools.push({ googleSearch: {} });
  if (tools.length === 0) return {};
  const { tool_choice: choice } = request;
  const config =
    choice === null || choice === undefined || functionDeclarations.length === 0 ? undefined : callingConfig(choice);
  return config === undefined ? { tools } : { tools, toolConfig: { functionCallingConfig: config } };
}

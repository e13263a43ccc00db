import type { CallToolResult, Tool } from '@modelcontextprotocol/server';
import type { CallContext } from '../core/access/call-context.ts';
import type { Principal } from '../core/access/principal.ts';
import { checkContent } from '../domain/check-shape.ts';
import type { LimitedEndpoint } from '../domain/rate-limits.ts';
import type { Validator } from '../generated/validators.js';

/** Who calls a tool, and from where. */
export interface ToolCaller {
  readonly principal: Principal;
  readonly context: CallContext;
  /** Counts the call against the limits a minute, as a request of that endpoint. @throws ApiError 429 */
  takeRate(endpoint: LimitedEndpoint): void;
  /** Takes so many bytes of what requests may hold in memory, next to what this one holds. @returns gives them back @throws ApiError 503 */
  borrow(bytes: number): () => void;
}

export interface McpTool {
  /** What `tools/list` shows of it. */
  readonly definition: Tool;
  /** Checks the arguments and does the work. @throws ApiError, PolicyFailure, StoreUnavailable */
  call(caller: ToolCaller, args: unknown): Promise<CallToolResult>;
}

/** A schema of `schemas/mcp`: every subschema stands where it is used, as not every client follows a `$ref`. */
type ObjectSchema = Pick<Tool['inputSchema'], 'properties' | 'required'>;

export interface ToolFacts {
  readonly name: string;
  readonly title: string;
  /** Of the arguments. Its description is the tool's. */
  readonly schema: ObjectSchema & { readonly description: string };
  /** Of `structuredContent`; absent where the result has none. */
  readonly resultSchema?: ObjectSchema;
  /** It changes nothing and costs nothing, so clients may call it without asking. */
  readonly isReadOnly: boolean;
}

/** A tool whose arguments are what its validator says. */
export const defineTool = <Args>(
  facts: ToolFacts,
  validator: Validator<Args>,
  run: (caller: ToolCaller, args: Args) => Promise<CallToolResult>,
): McpTool => ({
  definition: definitionOf(facts),
  call: (caller, args) => run(caller, checkContent(validator, args)),
});

function definitionOf({ name, title, schema, resultSchema, isReadOnly }: ToolFacts): Tool {
  return {
    name,
    title,
    description: schema.description,
    inputSchema: closedObject(schema),
    ...(resultSchema === undefined ? {} : { outputSchema: closedObject(resultSchema) }),
    annotations: isReadOnly
      ? { title, readOnlyHint: true, idempotentHint: true, openWorldHint: false }
      : { title, readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
  };
}

const closedObject = ({ properties = {}, required = [] }: ObjectSchema): Tool['inputSchema'] => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});

/** Usage for `_meta`, which agents read token by token: costs that are zero are left out, but for the sum. */
export function usageMeta(usage: object): object {
  const shown = Object.entries(usage).map(([name, value]) => [
    name,
    name === 'cost_details' && typeof value === 'object' && value !== null
      ? Object.fromEntries(Object.entries(value).filter(([, cost]) => cost !== 0))
      : value,
  ]);
  return Object.fromEntries(shown);
}

export const text = (content: string): CallToolResult['content'][number] => ({ type: 'text', text: content });

import type { CallToolResult, Tool } from '@modelcontextprotocol/server';
import type { CallContext, Principal } from '../core/authorize.ts';
import type { WrittenAnswer } from '../core/provider-answer.ts';
import type { Answers } from '../core/target-exchange.ts';
import { checkContent } from '../domain/check-shape.ts';
import { ApiError } from '../domain/errors.ts';
import type { LimitedEndpoint } from '../domain/limits.ts';
import { exceededBound } from '../lib/json.ts';
import type { Validator } from '../lib/schemas.ts';
import type { ParsedJson } from '../net/event-stream.ts';

/** Caller of a tool, and the address they call from. */
export interface ToolCaller {
  readonly principal: Principal;
  readonly context: CallContext;
  /** Counts the call against the limits a minute, as a request of that endpoint. @throws ApiError 429 */
  takeRate(endpoint: LimitedEndpoint): void;
  /** Takes so many bytes of what requests may hold in memory, next to what this one holds. @returns gives them back @throws ApiError 503 */
  borrow(bytes: number): () => void;
}

export interface McpTool {
  /** Entry in `tools/list`. */
  readonly definition: Tool;
  /** Checks the arguments and does the work. @throws ApiError, PolicyFailure, StoreUnavailable */
  call(caller: ToolCaller, args: unknown): Promise<CallToolResult>;
}

/** A schema of `schemas/mcp`: every subschema stands where it is used, as not every client follows a `$ref`. */
type ObjectSchema = Pick<Tool['inputSchema'], 'properties' | 'required'>;

export interface ToolFacts {
  readonly name: string;
  readonly title: string;
  /** Schema of the arguments. Its description is the tool's. */
  readonly schema: ObjectSchema & { readonly description: string };
  /** Schema of `structuredContent`; absent where the result has none. */
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

/** Bounds of JSON that the serving thread parses in some 10 ms. */
const BOUNDS = { depth: 200, values: 20_000, fields: 10_000 };

/** Bytes of an answer: clients cut a result at 1 MiB, and to parse much more would keep everyone waiting. */
const MOST_BYTES = 2 * 1024 * 1024;

/**
 * A whole answer as the object that a REST caller would get, though not yet known to be well-formed.
 * @throws ApiError 502 for one that no client could show, or of more values than a tool's result has use for; it is still paid for
 */
export function readAnswer(answer: WrittenAnswer<object>): unknown {
  const json = answer.json(answer.ours);
  if (typeof json === 'string') return JSON.parse(json);
  const length = json.reduce((sum, piece) => sum + piece.length, 0);
  const bytes = Buffer.concat(length > MOST_BYTES ? [] : json);
  if (length > MOST_BYTES || exceededBound(bytes, BOUNDS) !== undefined) {
    throw new ApiError(502, 'upstream_error', 'The answer of the provider is too large for a tool result.');
  }
  return JSON.parse(bytes.toString());
}

/** Parses an answer with pictures. A large one is parsed on another thread. @throws TransportError, ApiError 503 */
export async function readPictures(
  answer: WrittenAnswer<object>,
  parseLarge: (json: Buffer) => ReturnType<Answers['parse']>,
): Promise<ParsedJson> {
  const json = answer.json(answer.ours);
  return typeof json === 'string' ? { json: JSON.parse(json), longTexts: new Map() } : parseLarge(Buffer.concat(json));
}

/** A field of an object, or an entry of a list; undefined where there is none. */
export const field = (value: unknown, name: string | number): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined;

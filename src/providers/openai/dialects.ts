import { KNOWN_PROVIDERS, OTHER_SERVERS } from '../../config/known-providers.ts';
import type { FieldShape, ProviderDialect } from '../../generated/types.ts';
import { anything, listOf, objectOf, type RequestTable, single, type Takes } from '../wire/request-fields.ts';

/** In what a provider's chat endpoint differs from OpenAI's; its extensions as checks of what stands in a field. */
export type OpenAiDialect = Readonly<Omit<ProviderDialect, 'extensions' | 'note'>> & Pick<RequestTable, 'extensions'>;

/** Marks that answers of this gateway carry and that only the provider they came from understands. */
const MARKS = ['reasoning', 'reasoning_content', 'reasoning_details', 'images', 'extra_content'];

function takes(shape: FieldShape): Takes {
  if (shape === 'single') return single;
  if (shape === 'any') return anything;
  if (!Array.isArray(shape)) return objectOf(fieldsOf(shape));
  const items = shape.map(takes);
  return listOf((value) => items.some((holds) => holds(value)));
}

const fieldsOf = (shapes: Readonly<Record<string, FieldShape>>): OpenAiDialect['extensions'] =>
  Object.fromEntries(Object.entries(shapes).map(([name, shape]) => [name, takes(shape)]));

const dialectOf = ({ extensions, messages, note: _, ...dialect }: ProviderDialect): OpenAiDialect => ({
  ...dialect,
  extensions: fieldsOf(extensions),
  ...(messages === undefined ? {} : { messages: { ...messages, leftOut: [...MARKS, ...messages.leftOut] } }),
});

const OTHER = dialectOf(OTHER_SERVERS);

const DIALECTS: ReadonlyMap<string, OpenAiDialect> = new Map(
  KNOWN_PROVIDERS.flatMap(({ id, dialect }) => (dialect === undefined ? [] : [[id, dialectOf(dialect)] as const])),
);

/** The dialect of a provider of the catalogue; for any other, of a server that takes what OpenAI's takes. */
export const openAiDialect = (providerId: string): OpenAiDialect => DIALECTS.get(providerId) ?? OTHER;

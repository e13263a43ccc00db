import { entryOf } from '../../lib/text.ts';
import { isRecord } from '../wire/json.ts';

const MAX_DEPTH = 4;
const MAX_PROPERTIES = 16;

/** A small value that a simple JSON Schema accepts: its required properties, filled by type. Anything unclear is a text. */
export function jsonSample(schema: unknown, depth = 0): unknown {
  if (!isRecord(schema)) return depth === 0 ? {} : 'sandbox';
  if (schema.const !== undefined) return schema.const;
  if (Array.isArray(schema.enum) && schema.enum.length > 0) return schema.enum[0];
  switch (schema.type) {
    case 'object':
      return sampleObject(schema, depth);
    case 'array':
      return [];
    case 'integer':
    case 'number':
      return typeof schema.minimum === 'number' ? schema.minimum : 1;
    case 'boolean':
      return true;
    case 'null':
      return null;
    default:
      return depth === 0 ? sampleObject(schema, depth) : 'sandbox';
  }
}

function sampleObject(schema: Readonly<Record<string, unknown>>, depth: number): Record<string, unknown> {
  if (depth >= MAX_DEPTH || !Array.isArray(schema.required)) return {};
  const properties = isRecord(schema.properties) ? schema.properties : {};
  const names = schema.required.filter((name: unknown) => typeof name === 'string').slice(0, MAX_PROPERTIES);
  return Object.fromEntries(names.map((name) => [name, jsonSample(entryOf(properties, name), depth + 1)]));
}

// Reads the JSON Schemas of schemas/ as one set in which schemas refer to each other by title.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json;
}
export interface TitledSchema {
  readonly title: string;
  readonly schema: JsonObject;
}

const folder = path.join(import.meta.dirname, '../schemas');
const MAPS_OF_SCHEMAS = new Set(['properties', 'patternProperties']);
const LISTS_OF_SCHEMAS = new Set(['allOf', 'anyOf', 'oneOf']);
const SCHEMAS = new Set(['items', 'additionalProperties', 'if', 'then', 'else', 'not']);
/** The type compiler mistranslates or ignores the first two; callers' lists are not compared pairwise; no format is checked. */
const FORBIDDEN = ['prefixItems', 'unevaluatedProperties', 'uniqueItems', 'format'];

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The schema with `change` applied to each direct subschema; properties and values that look like keywords stay. */
export function mapSubschemas(schema: JsonObject, change: (subschema: JsonObject) => JsonObject): JsonObject {
  const changeOne = (value: Json): Json => (isObject(value) ? change(value) : value);
  const entries = Object.entries(schema).map(([keyword, value]): [string, Json] => {
    if (MAPS_OF_SCHEMAS.has(keyword) && isObject(value)) {
      return [keyword, Object.fromEntries(Object.entries(value).map(([name, each]) => [name, changeOne(each)]))];
    }
    if (LISTS_OF_SCHEMAS.has(keyword) && Array.isArray(value)) return [keyword, value.map(changeOne)];
    return [keyword, SCHEMAS.has(keyword) ? changeOne(value) : value];
  });
  return Object.fromEntries(entries);
}

/** The schema, and all below it, without some keywords. */
export function withoutKeywords(schema: JsonObject, keywords: ReadonlySet<string>): JsonObject {
  const kept = Object.fromEntries(Object.entries(schema).filter(([keyword]) => !keywords.has(keyword)));
  return mapSubschemas(kept, (subschema) => withoutKeywords(subschema, keywords));
}

/** Schema files by their path below schemas/, which is also their `$id`, in the order of the paths. */
function readSchemas(): Map<string, JsonObject> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => name.split(path.sep).join('/'))
    .filter((name) => name.endsWith('.json'))
    .sort();
  return new Map(names.map((name) => [name, readSchema(name)]));
}

function readSchema(name: string): JsonObject {
  const schema: unknown = JSON.parse(readFileSync(path.join(folder, name), 'utf8'));
  if (!isObject(schema)) throw new Error(`schemas/${name}: not an object`);
  if (schema.$id !== name) throw new Error(`schemas/${name}: \`$id\` must be its path, "${name}"`);
  const { $defs } = schema;
  if (typeof schema.title !== 'string' && $defs === undefined)
    throw new Error(`schemas/${name}: no title and no \`$defs\``);
  if (!isObject($defs)) return schema;
  const definitions = Object.entries($defs).map(([key, value]): [string, Json] => [
    key,
    isObject(value) ? unfoldAnswer(value) : value,
  ]);
  return { ...schema, $defs: Object.fromEntries(definitions) };
}

/**
 * The two answers of the management API are written in short. `"one": "key"` is an object with the resource under that name;
 * `"many": "keys"` is a page of them with its `nextCursor`. The resource is `#/$defs/record`, or the schema that `of` refers to.
 */
function unfoldAnswer(schema: JsonObject): JsonObject {
  const { one, many, of = '#/$defs/record', required, properties, ...rest } = schema;
  const requiredToo = Array.isArray(required) ? required : [];
  const more = isObject(properties) ? properties : {};
  const answer = (names: Json[], fields: JsonObject): JsonObject => ({
    ...rest,
    type: 'object',
    additionalProperties: false,
    required: names,
    properties: fields,
  });
  if (typeof one === 'string') return answer([one, ...requiredToo], { [one]: { $ref: of }, ...more });
  if (typeof many !== 'string') return schema;
  const page = {
    [many]: { type: 'array', items: { $ref: of } },
    nextCursor: { $ref: 'common.json#/$defs/next_cursor' },
  };
  return answer([...requiredToo, ...Object.keys(page)], { ...more, ...page });
}

/** Finds what a `$ref` in a file means. */
class References {
  private readonly files: Map<string, JsonObject>;

  constructor(files: Map<string, JsonObject>) {
    this.files = files;
  }

  /** `$ref` to a titled schema becomes `{$ref: title}`; an untitled definition takes the place of its `$ref`. */
  flatten(schema: JsonObject, file: string): JsonObject {
    const wrong = FORBIDDEN.find((keyword) => keyword in schema);
    if (wrong !== undefined) throw new Error(`schemas/${file}: \`${wrong}\` is not used in our schemas`);
    const { $ref, ...rest } = mapSubschemas(schema, (subschema) => this.flatten(subschema, file));
    if (typeof $ref !== 'string') return rest;
    const { target, targetFile } = this.find($ref, file);
    if (typeof target.title === 'string') return { ...rest, $ref: target.title };
    return { ...this.flatten(target, targetFile), ...rest };
  }

  private find(ref: string, file: string): { target: JsonObject; targetFile: string } {
    const [relative = '', pointer = ''] = ref.split('#');
    const targetFile = relative === '' ? file : path.posix.join(path.posix.dirname(file), relative);
    let target: Json | undefined = this.files.get(targetFile);
    for (const key of pointer.split('/').slice(1)) target = isObject(target) ? target[key] : undefined;
    if (!isObject(target)) throw new Error(`schemas/${file}: nothing at ${ref}`);
    return { target, targetFile };
  }
}

/** Every schema file and every titled definition of one, referring to each other by title, in the order of the titles. */
export function readTitledSchemas(): TitledSchema[] {
  const files = readSchemas();
  const references = new References(files);
  const found = new Map<string, TitledSchema>();
  for (const [file, { $schema: _dialect, $id: _id, $defs = {}, ...schema }] of files) {
    const definitions = isObject($defs) ? Object.values($defs) : [];
    for (const candidate of [schema, ...definitions]) {
      if (!isObject(candidate) || typeof candidate.title !== 'string') continue;
      const { title } = candidate;
      if (found.has(title)) throw new Error(`schemas/${file}: the title ${title} is used twice`);
      found.set(title, { title, schema: references.flatten(candidate, file) });
    }
  }
  return [...found.values()].sort((a, b) => (a.title < b.title ? -1 : 1));
}

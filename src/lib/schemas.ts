// The JSON Schemas of schemas/ as one set in which schemas refer to each other by title, and their validators, each compiled by ajv when
// it is first used.
import { createHash, randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire, getCompileCacheDir } from 'node:module';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { compileFunction } from 'node:vm';
import type { Ajv2020 as Ajv } from 'ajv/dist/2020.js';
import manifest from '../../package.json' with { type: 'json' };
import type { Schemas } from '../generated/types.ts';
import { entryOf } from './text.ts';

export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json;
}
export interface TitledSchema {
  readonly title: string;
  readonly schema: JsonObject;
}

const folder = path.join(import.meta.dirname, '../../schemas');
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

let texts: ReadonlyMap<string, string> | undefined;

/** The texts of the schema files by their path below schemas/, which is also their `$id`, in the order of the paths. */
export function schemaTexts(): ReadonlyMap<string, string> {
  // Read once: whatever the process compiles later belongs to what it has compiled before.
  texts ??= new Map(
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .map((name) => name.split(path.sep).join('/'))
      .filter((name) => name.endsWith('.json'))
      .sort()
      .map((name) => [name, readFileSync(path.join(folder, name), 'utf8')]),
  );
  return texts;
}

function parseSchema(name: string, text: string): JsonObject {
  const schema: unknown = JSON.parse(text);
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
    const wrong = FORBIDDEN.find((keyword) => Object.hasOwn(schema, keyword));
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
    for (const key of pointer.split('/').slice(1)) target = isObject(target) ? entryOf(target, key) : undefined;
    if (!isObject(target)) throw new Error(`schemas/${file}: nothing at ${ref}`);
    return { target, targetFile };
  }
}

/** Every schema file and every titled definition of one, referring to each other by title, in the order of the titles. */
export function readTitledSchemas(): TitledSchema[] {
  const files = new Map([...schemaTexts()].map(([name, text]) => [name, parseSchema(name, text)]));
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

export interface ValidationError {
  /** JSON pointer into the data. */
  readonly instancePath: string;
  readonly schemaPath: string;
  readonly keyword: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly message?: string;
}

/** `errors` belongs to the latest call; the first of them is the first fault. */
export interface Validator<T> {
  (data: unknown): data is T;
  errors?: readonly ValidationError[] | null | undefined;
}

export type Title = keyof Schemas;

const OPTIONS = {
  strict: true,
  // `then: {required}` names properties that are declared one level up.
  strictRequired: false,
  allowUnionTypes: true,
  allErrors: false,
  // One function for each title instead of copies wherever it is referred to.
  inlineRefs: false,
  // The schemas are checked by a test, not at each start.
  validateSchema: false,
  meta: false,
  code: { source: true, lines: true },
} as const;
/** Keywords that a validator does not read. */
const NOT_IN_VALIDATORS = new Set(['title', 'description', 'default', 'examples', 'topic']);

const require = createRequire(import.meta.url);
let ajv: Ajv | undefined;

/** ajv with all schemas. It is loaded only where a validator must be compiled. */
function loadAjv(): Ajv {
  const { Ajv2020 }: typeof import('ajv/dist/2020.js') = require('ajv/dist/2020.js');
  const loaded = new Ajv2020(OPTIONS);
  for (const { title, schema } of readTitledSchemas()) {
    loaded.addSchema({ ...withoutKeywords(schema, NOT_IN_VALIDATORS), $id: title });
  }
  return loaded;
}

/** The code of a validator, which a module would export. */
export function validatorCode(title: Title): string {
  const standalone: typeof import('ajv/dist/standalone/index.js') = require('ajv/dist/standalone/index.js');
  ajv ??= loadAjv();
  const validate = ajv.getSchema(title);
  if (validate === undefined) throw new Error(`no schema has the title ${title}`);
  return standalone.default(ajv, validate);
}

let digest: string | undefined;

/** The folder of kept code, next to what Node has compiled of the sources: one for each state of the schemas, of this file and of ajv. */
function codeFolder(cache: string): string {
  if (digest === undefined) {
    const hash = createHash('sha256')
      .update(manifest.dependencies.ajv)
      .update(readFileSync(import.meta.filename));
    for (const [name, text] of schemaTexts()) hash.update(`${name}\n${text}`);
    digest = hash.digest('hex').slice(0, 16);
  }
  return path.join(cache, `validators-${digest}`);
}

/**
 * The kept code of a validator; it is made, and kept if the folder can be written, where there is none. Who can write there can also
 * replace what Node keeps there.
 */
export function keptCode(title: Title, cache: string | undefined): string {
  if (cache === undefined) return validatorCode(title);
  const file = path.join(codeFolder(cache), `${title}.js`);
  try {
    return readFileSync(file, 'utf8');
  } catch {
    const code = validatorCode(title);
    keep(file, code);
    return code;
  }
}

/** Another process may do the same, or read at this moment: the file appears whole. */
function keep(file: string, code: string): void {
  const written = `${file}.${randomUUID()}`;
  try {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(written, code);
    renameSync(written, file);
  } catch {
    // A cache that cannot be written costs time at the next start, nothing else.
  }
}

function compile<T extends Title>(title: T): Validator<Schemas[T]> {
  const run = compileFunction(keptCode(title, getCompileCacheDir()), ['module', 'exports', 'require'], {
    // A profile counts its functions to this file.
    filename: path.join(import.meta.filename, `${title}.js`),
  });
  const module = {};
  Reflect.apply(run, undefined, [module, {}, require]);
  return Reflect.get(module, 'exports');
}

function uncompiled<T extends Title>(title: T): Validator<Schemas[T]> {
  let compiled: Validator<Schemas[T]> | undefined;
  const validate: Validator<Schemas[T]> = (data): data is Schemas[T] => {
    compiled ??= compile(title);
    const isValid = compiled(data);
    validate.errors = compiled.errors;
    return isValid;
  };
  return validate;
}

const validators = {};

/** The validator of a schema by its title, the same one each time. It is compiled at its first call. */
export function validator<T extends Title>(title: T): Validator<Schemas[T]> {
  if (!Object.hasOwn(validators, title)) Reflect.set(validators, title, uncompiled(title));
  return Reflect.get(validators, title);
}

/** Compiles validators before they are needed, so that no request waits for it: one in a turn of the event loop. */
export async function compileAhead(titles: readonly Title[]): Promise<void> {
  for (const title of titles) {
    await setImmediate();
    validator(title)(undefined);
  }
}

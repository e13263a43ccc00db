// JSON near a valid one: values, names and text that parsers and validators have tripped over.
import type { Random } from '../../crash/random.ts';

/** Text that stands for itself in JSON, where no value of JavaScript would be written so. */
const raw = (text: string): string => `@@raw ${Buffer.from(text).toString('hex')}@@`;
/** A name that may stand in an object a second time. */
const again = (random: Random, name: string): string => `@@again ${random.between(0, 999_999)}@@${name}`;

/** The JSON text of a value that may hold such marks. */
export const written = (value: unknown): string =>
  (JSON.stringify(value) ?? 'null')
    .replace(/"@@raw ([0-9a-f]*)@@"/g, (_, hex: string) => Buffer.from(hex, 'hex').toString())
    .replace(/"@@again \d+@@/g, '"');

/** Fields that name a model or raise a bill somewhere, and names that have a meaning in JavaScript. */
// biome-ignore format: a list of words
const NAMES = [
  'model', 'models', 'fallbacks', 'fallback_models', 'context_window_fallbacks', 'content_policy_fallbacks', 'extra_body', 'best_of',
  'n_predict', 'num_predict', 'max_new_tokens', 'max_output_tokens', 'max_length', 'min_tokens', 'num_return_sequences', 'options',
  'plugins', 'preset', 'route', 'engine', 'provider', 'api_base', 'base_url', 'mcp_servers', 'container', 'speed', 'inference_geo',
  'search_parameters', 'litellm_params', 'generationConfig', 'x_trace', 'n', 'max_tokens', 'max_completion_tokens', 'service_tier',
  'tools', 'stream', 'messages', 'store', 'user', 'betas', 'google', 'thinking', 'reasoning', 'cached_content', 'cachedContent',
  'web_search_options', 'prediction', 'modalities', 'audio', '__proto__', 'constructor', 'prototype', 'toString', 'toJSON', 'valueOf',
  'hasOwnProperty', 'length', 'then', '0', '', ' ', 'model ', 'Model', 'MODEL', 'model\u0000', 'a/b~c', '\ud800', '\u202emodel', '$ref', '@type',
] as const;

const NUMBERS = [
  '1e400',
  '-1e400',
  '-0',
  '1e-999',
  '9007199254740993',
  '18446744073709551616',
  '0.1e1',
  '1E5',
  '1.0',
  `${'9'.repeat(400)}`,
];

const deep = (depth: number): string => raw(`${'['.repeat(depth)}${']'.repeat(depth)}`);
const deepObject = (depth: number): string => raw(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`);

/** A value that is seldom where it is put. */
export function oddValue(random: Random): unknown {
  const make = random.pick<() => unknown>([
    () => random.pick([null, true, false, 0, 1, -1, 1.5, 2 ** 31, 2 ** 53, 1e308, -1e308]),
    () => raw(random.pick(['1e400', ...NUMBERS])),
    () =>
      random.pick([
        '',
        ' ',
        '\u0000',
        '\ud800',
        '\udfff\ud800',
        '\u2028',
        '\ufeff',
        'null',
        '0x10',
        'NaN',
        '../..',
        '%00',
        '\r\nx-injected: 1',
      ]),
    () => raw(random.pick(['"\\ud800"', '"\\u0000"', '"\\/"', '"\\ud83d\\ude00"', '"\\udc00\\ud800"'])),
    () => 'long '.repeat(random.between(1, 4000)),
    () => random.pick(['pricey', 'claude-opus-5-5', 'gpt-6-sol', 'beta/pricey', 'sandbox-free', 'own/metered']),
    () => [],
    () => ({}),
    () => [[], {}, null, ''],
    () => deep(random.pick([10, 60, 64, 65, 70, 2000])),
    () => deepObject(random.pick([10, 60, 64, 65, 70, 2000])),
    () => Array.from({ length: random.between(1, 300) }, (_, position) => position),
    () =>
      Object.fromEntries(
        Array.from({ length: random.between(1, 300) }, (_, position) => [`field ${position}`, position]),
      ),
    () => ({ model: 'pricey', models: ['pricey'], max_tokens: 1e9 }),
    () => ({
      [again(random, '__proto__')]: { model: 'pricey', isAdmin: true },
      constructor: { prototype: { stream: true } },
    }),
    () => [{ type: 'web_search' }, { type: 'function', function: { name: 'f', model: 'pricey' } }],
  ]);
  return make();
}

type Container = Record<string, unknown> | unknown[];
const isContainer = (value: unknown): value is Container => typeof value === 'object' && value !== null;

/** Objects and lists in a value, itself included; as many as are worth choosing from. */
function containersIn(value: unknown, found: Container[] = []): [Container, ...Container[]] | undefined {
  if (isContainer(value) && found.length < 500) {
    found.push(value);
    for (const inner of Object.values(value)) containersIn(inner, found);
  }
  const [first, ...rest] = found;
  return first === undefined ? undefined : [first, ...rest];
}

const fieldOf = (random: Random, object: Container): string | undefined => {
  const [first, ...rest] = Object.keys(object);
  return first === undefined ? undefined : random.pick([first, ...rest]);
};

function changeObject(random: Random, object: Record<string, unknown>): void {
  const field = fieldOf(random, object);
  const change = random.between(0, 5);
  if (change <= 1 || field === undefined) object[again(random, random.pick(NAMES))] = oddValue(random);
  else if (change === 2) delete object[field];
  else if (change === 3) object[again(random, field)] = random.chance(0.5) ? oddValue(random) : object[field];
  else object[field] = oddValue(random);
}

function changeList(random: Random, list: unknown[]): void {
  const place = random.between(0, list.length);
  const change = random.between(0, 3);
  if (change === 0) list.splice(place, 1);
  else if (change === 1) list.push(...Array.from({ length: random.between(1, 200) }, () => list[place] ?? null));
  else list.splice(place, change - 2, oddValue(random));
}

/** The same JSON with a few changes at random places. The value itself is changed. */
export function mutate<T extends object>(random: Random, value: T, changes = random.between(1, 3)): T {
  for (let change = 0; change < changes; change += 1) {
    const containers = containersIn(value);
    if (containers === undefined) return value;
    const chosen = random.pick(containers);
    if (Array.isArray(chosen)) changeList(random, chosen);
    else changeObject(random, chosen);
  }
  return value;
}

/** Bytes that are almost the JSON text. */
export function mangle(random: Random, text: string): Buffer {
  const cut = random.between(0, text.length);
  const make: () => string | Buffer = random.pick([
    () => text.slice(0, cut),
    () => `${text}${random.pick([' ', '\n', 'x', '{}', '\u0000', ',', ']'])}`,
    () => `\ufeff${text}`,
    () =>
      Buffer.concat([
        Buffer.from(text.slice(0, cut)),
        Buffer.from([random.between(128, 255)]),
        Buffer.from(text.slice(cut)),
      ]),
    () => Buffer.from(text, 'utf16le'),
    () => text.replaceAll('"', "'"),
    () => text.replace('{', '{/* */'),
    () => text.replace(/\d+/, '0123'),
    () => text.replace(/\d+/, random.pick(['NaN', 'Infinity', '+1', '.5', '1.', '0x1'])),
    () => text.replaceAll(',', ' ,\t\n\r '),
    () => `${' '.repeat(random.between(1, 20_000))}${text}`,
    () => `[${text}]`,
    () => JSON.stringify(text),
    () => random.pick(['', 'null', '0', '""', '[]', '{}', '[', '{', '"', '{"model"', 'undefined']),
  ] as const);
  return Buffer.from(make());
}

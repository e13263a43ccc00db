/** Modules that look like a policy of ours and harm whoever loads or evaluates them, written in WebAssembly's own bytes. */

const PAGE = 65_536;
/** All memory that a policy may have. */
const MAX_PAGES = 8192;
/** For a list of 33 million zeros. */
const LIST_PAGES = 1000;
/** Addresses of the module's texts; from `free` on its memory is free. */
const PLACE = { entrypoints: 16, builtins: 128, hidden: 144, free: 2 * PAGE } as const;
const TEXTS: readonly (readonly [place: number, text: string])[] = [
  [PLACE.entrypoints, '{"gateway/authz/decision":0,"gateway/authz/permitted":1}\0'],
  [PLACE.builtins, '{}\0'],
  [PLACE.hidden, '{"sprintf":1}\0'],
];

const unsigned = (value: number): number[] =>
  value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)];
const signed = (value: number): number[] =>
  value >= -64 && value < 64 ? [value & 0x7f] : [(value & 0x7f) | 0x80, ...signed(value >> 7)];

/** An instruction that puts a number on the stack. */
const number = (value: number): number[] => [0x41, ...signed(value)];
const MEMORY_BYTES = [0x3f, 0x00, ...number(PAGE), 0x6c];
/** Grows the memory to so many pages. */
const grow = (pages: number): number[] => [...number(pages), 0x3f, 0x00, 0x6b, 0x40, 0x00, 0x1a];
/** Fills the free memory with the letter a. */
const FILL = [...number(PLACE.free), ...number(0x61), ...MEMORY_BYTES, ...number(PLACE.free), 0x6b, 0xfc, 0x0b, 0x00];
/** Stores four characters. */
const store = (place: number, text: string): number[] => [
  ...number(place),
  ...number(Buffer.from(text, 'latin1').readInt32LE()),
  ...[0x36, 0x02, 0x00],
];
/** Writes `[0,0,…,0]` to the free memory, eight characters a turn. */
const WRITE_ZEROS = [
  ...store(PLACE.free - 4, '   ['),
  ...[...number(PLACE.free), 0x21, 0x00, 0x03, 0x40, 0x20, 0x00],
  ...[0x42, 0xb0, 0xd8, 0xc0, 0xe1, 0x82, 0x86, 0x8b, 0x98, 0x2c, 0x37, 0x03, 0x00],
  ...[0x20, 0x00, ...number(8), 0x6a, 0x22, 0x00, ...MEMORY_BYTES, 0x49, 0x0d, 0x00, 0x0b],
  ...store(LIST_PAGES * PAGE - 4, '0]\0\0'),
];
const CALL_ABORT = [0x10, 0x00];
const CALL_BUILTIN = [0x10, 0x01];

/** The functions of a policy, each with its instructions: it takes a number, which may be left out, and gives one. */
const FUNCTIONS = {
  builtins: number(PLACE.builtins),
  entrypoints: number(PLACE.entrypoints),
  eval: number(0),
  opa_eval_ctx_get_result: number(PLACE.builtins),
  opa_eval_ctx_new: number(0),
  opa_eval_ctx_set_data: number(0),
  opa_eval_ctx_set_entrypoint: number(0),
  opa_eval_ctx_set_input: number(0),
  opa_heap_ptr_get: number(PLACE.free),
  opa_heap_ptr_set: number(0),
  opa_json_dump: [0x20, 0x00],
  opa_json_parse: number(1),
  opa_malloc: number(PLACE.free),
} as const;

interface Misdeed {
  readonly functions?: Partial<Readonly<Record<keyof typeof FUNCTIONS, readonly number[]>>>;
  readonly imports?: readonly string[];
}

const MISDEEDS = {
  'a list of entrypoints without end': { functions: { entrypoints: [...FILL, ...number(PLACE.free)] } },
  'a list of entrypoints that takes more memory than V8 has': {
    functions: { entrypoints: [...grow(LIST_PAGES), ...WRITE_ZEROS, ...number(PLACE.free - 1)] },
  },
  'all memory while it is loaded': {
    functions: { entrypoints: [...grow(MAX_PAGES), ...FILL, ...number(PLACE.entrypoints)] },
  },
  /** It states the builtin only the first time. */
  'a hidden builtin': {
    functions: {
      builtins: [
        ...[0x23, 0x02, 0x04, 0x7f, ...number(PLACE.builtins)],
        ...[0x05, ...number(1), 0x24, 0x02, ...number(PLACE.hidden), 0x0b],
      ],
      eval: [...number(1), ...number(0), ...CALL_BUILTIN],
    },
  },
  'a failure whose text does not end': {
    functions: { eval: [...FILL, ...number(PLACE.free), ...CALL_ABORT, ...number(0)] },
  },
  'lines for the log': { imports: ['opa_println'] },
} as const satisfies Readonly<Record<string, Misdeed>>;

/** A module that passes for a policy until it does what its name states. */
export function hostileModule(name: keyof typeof MISDEEDS): Buffer {
  const { functions, imports = [] }: Misdeed = MISDEEDS[name];
  const bodies = Object.entries({ ...FUNCTIONS, ...functions });
  const imported = ['opa_abort', 'opa_builtin0', ...imports];
  const typeOf = (each: string): number => (each === 'opa_builtin0' ? 2 : 1);
  return Buffer.from([
    ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
    ...section(1, [0x60, 1, 0x7f, 1, 0x7f], [0x60, 1, 0x7f, 0], [0x60, 2, 0x7f, 0x7f, 1, 0x7f]),
    ...section(2, ...imported.map((each) => [...text('env'), ...text(each), 0x00, typeOf(each)]), [
      ...text('env'),
      ...text('memory'),
      0x02,
      0x00,
      1,
    ]),
    ...section(3, ...bodies.map(() => [0])),
    ...section(6, global(0, 1), global(0, 3), global(1, 0)),
    ...section(
      7,
      ...bodies.map(([each], at) => [...text(each), 0x00, imported.length + at]),
      [...text('opa_wasm_abi_version'), 0x03, 0],
      [...text('opa_wasm_abi_minor_version'), 0x03, 1],
    ),
    ...section(10, ...bodies.map(([, body]) => [...unsigned(body.length + 2), 0x00, ...body, 0x0b])),
    ...section(11, ...TEXTS.map(([place, each]) => [0x00, ...number(place), 0x0b, ...text(each)])),
  ]);
}

const text = (value: string): number[] => [...unsigned(value.length), ...Buffer.from(value, 'latin1')];
const global = (mutable: 0 | 1, value: number): number[] => [0x7f, mutable, ...number(value), 0x0b];

function section(id: number, ...entries: readonly (readonly number[])[]): number[] {
  const content = [...unsigned(entries.length), ...entries.flat()];
  return [id, ...unsigned(content.length), ...content];
}

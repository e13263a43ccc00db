import Module, { createRequire } from 'node:module';
import path from 'node:path';
import { type DataDocument, PolicyFailure } from './data-document.ts';
import { inputText } from './input-document.ts';
import { moduleFault } from './module-bounds.ts';

export const ENTRYPOINTS = ['gateway/authz/decision', 'gateway/authz/permitted'] as const;
type Entrypoint = (typeof ENTRYPOINTS)[number];

export interface EngineOptions {
  /** Data documents kept loaded at once. */
  readonly maxInstances?: number;
  /** The policy's own, which stands next to each data document: JSON text of an object with members. */
  readonly ownData?: string | undefined;
}

export interface WasmEngine {
  /**
   * Evaluates an entrypoint for one input and data document. The same object again means: the same question and answer as before.
   * @throws PolicyFailure whenever the evaluation does not end in exactly one value.
   */
  evaluate(entrypoint: Entrypoint, input: object, data: DataDocument): PolicyAnswer;
  /** Drops every instance; evaluating afterwards is a PolicyFailure. */
  close(): void;
}

const PAGE_BYTES = 65_536;
/** Memory for the module itself, inputs and results. */
const BASE_PAGES = 40;
/** A parsed document takes about 11 times its text; growing page by page while it loads takes quadratic time. */
const HEAP_PER_TEXT = 12;
/** Memory never shrinks, so the pool is bounded by pages too: 512 MB. */
const MAX_POOLED_PAGES = 8_192;
const ENTERED = 'The policy engine was entered while it evaluates.';

/**
 * Evaluates one compiled policy by a pool of its instances, found by the digest of the data loaded into each. An instance
 * that threw anything is never used again, because it may answer from overwritten data.
 * @throws PolicyFailure when the module is not a policy of ours.
 */
export function createWasmEngine(wasm: Uint8Array, { maxInstances = 64, ownData }: EngineOptions = {}): WasmEngine {
  const pool = createPool(compile(wasm), maxInstances, ownData);
  let refusal: string | null = null;
  return {
    evaluate(entrypoint, input, data) {
      if (refusal !== null) throw new PolicyFailure(refusal);
      refusal = ENTERED;
      try {
        const text = inputText(input);
        const instance = pool.take(data);
        const answer = instance.evaluate(entrypoint, text);
        pool.giveBack(data, instance);
        return answer;
      } catch (cause) {
        throw new PolicyFailure('The policy could not be evaluated.', errorOf(cause));
      } finally {
        if (refusal === ENTERED) refusal = null;
      }
    },
    close() {
      refusal = 'The policy engine is closed.';
      pool.clear();
    },
  };
}

interface Pool {
  /** An instance with this data, no longer in the pool: one that is not given back is never used again. */
  take(data: DataDocument): PolicyInstance;
  giveBack(data: DataDocument, instance: PolicyInstance): void;
  clear(): void;
}

/**
 * If the document is not loaded, an instance whose memory suits it is loaded again: for a document that was asked for lately
 * the least recently used one, for a stranger that of the stranger before, so that keys that call once push nothing out and
 * keep to memory that the processor has at hand.
 */
function createPool(module: WebAssembly.Module, maxInstances: number, ownData: string | undefined): Pool {
  const instances = new Map<string, PolicyInstance>();
  /** Memory pages of the instances in the pool. */
  let pooledPages = 0;
  /** Digests of the last strangers. */
  const strangers = new Set<string>();
  /** The stranger whose document is loaded, until it is asked for again. */
  let guest = '';

  function remove(digest: string): PolicyInstance | undefined {
    const instance = instances.get(digest);
    if (instance === undefined) return undefined;
    instances.delete(digest);
    pooledPages -= instance.pages;
    return instance;
  }

  /** Removes the least recently used instances until there is room for one more; gives the last one removed. */
  function makeRoom(pages: number): PolicyInstance | undefined {
    let evicted: PolicyInstance | undefined;
    for (const digest of instances.keys()) {
      if (instances.size < maxInstances && pooledPages + pages <= MAX_POOLED_PAGES) break;
      evicted = remove(digest);
    }
    return evicted;
  }

  /** The instance of the stranger before, unless this one was here lately. */
  function placeOfStranger(digest: string): PolicyInstance | undefined {
    if (strangers.delete(digest)) return undefined;
    strangers.add(digest);
    for (const oldest of strangers) {
      if (strangers.size <= maxInstances) break;
      strangers.delete(oldest);
    }
    const before = guest;
    guest = digest;
    return remove(before);
  }

  return {
    take({ digest, text: rules }) {
      const found = remove(digest);
      if (found !== undefined) {
        if (guest === digest) guest = '';
        return found;
      }
      const text = ownData === undefined ? rules : withMembers(ownData, rules);
      const pages = BASE_PAGES + Math.ceil((HEAP_PER_TEXT * Buffer.byteLength(text)) / PAGE_BYTES);
      const left = placeOfStranger(digest);
      const free = makeRoom(pages) ?? left;
      const suits = free !== undefined && free.pages >= pages && free.pages <= 4 * pages;
      const instance = suits ? free : new PolicyInstance(module, pages);
      instance.load(text);
      return instance;
    },
    giveBack({ digest }, instance) {
      instances.set(digest, instance);
      pooledPages += instance.pages;
    },
    clear() {
      instances.clear();
      pooledPages = 0;
    },
  };
}

/** The members of two JSON objects that have some and share none, as one text. */
const withMembers = (one: string, other: string): string => `${one.slice(0, -1)},${other.slice(1)}`;

/** The functions that we call are those of version 1.2 of OPA's ABI, and older minor ones leak. The loader checks the 1. */
const LEAST_ABI_MINOR = 2;
/** Everything that the host offers a policy, but `opa_println`: a module could fill the log with it. */
const IMPORTS: readonly string[] = ['memory', 'opa_abort', ...[0, 1, 2, 3, 4].map((arity) => `opa_builtin${arity}`)];

/** Compiles the module and checks its bounds and its ABI, that it offers our entrypoints and asks for no builtin of the host. */
function compile(wasm: Uint8Array): WebAssembly.Module {
  try {
    const module = new WebAssembly.Module(wasm);
    const fault = moduleFault(wasm);
    if (fault !== null) throw new TypeError(fault);
    const foreign = WebAssembly.Module.imports(module).find(({ name }) => !IMPORTS.includes(name));
    if (foreign !== undefined) throw new TypeError(`The policy imports ${foreign.name}.`);
    const { minorVersion, entrypoints, hostBuiltins } = new PolicyInstance(module, BASE_PAGES);
    if (minorVersion < LEAST_ABI_MINOR) {
      throw new TypeError(`The policy has version 1.${minorVersion} of OPA's ABI; it must be 1.2 or a later 1.`);
    }
    const names = [...entrypoints.keys()].sort();
    if (names.join() !== ENTRYPOINTS.join()) throw new TypeError(`Its entrypoints are ${names.join(', ') || 'none'}.`);
    if (hostBuiltins !== '{}') throw new TypeError(`The policy asks for builtins of the host: ${hostBuiltins}.`);
    return module;
  } catch (cause) {
    throw new PolicyFailure('The compiled policy cannot be used.', errorOf(cause));
  }
}

/** The loader throws texts, and objects with a message. */
function errorOf(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown;
  const isObject = typeof thrown === 'object' && thrown !== null && 'message' in thrown;
  return new Error(String(isObject ? thrown.message : thrown));
}

const { loadPolicySync } = loader();

/**
 * OPA's own loader. It lends its builtins to every module, before any others, and reads a YAML parser for them. A policy may call no
 * builtin of the host, whatever it states, so the table of them is empty here.
 */
function loader(): typeof import('@open-policy-agent/opa-wasm') {
  const require = createRequire(import.meta.url);
  const builtins = path.join(path.dirname(require.resolve('@open-policy-agent/opa-wasm')), 'builtins', 'index.js');
  Object.assign(require.cache, { [builtins]: Object.assign(new Module(builtins), { exports: {}, loaded: true }) });
  return require('@open-policy-agent/opa-wasm');
}

/** The functions of OPA's ABI by which a module is evaluated. Their values are addresses in its memory and numbers of bytes. */
const ABI = [
  'builtins',
  'entrypoints',
  'eval',
  'opa_eval_ctx_get_result',
  'opa_eval_ctx_new',
  'opa_eval_ctx_set_data',
  'opa_eval_ctx_set_entrypoint',
  'opa_eval_ctx_set_input',
  'opa_heap_ptr_get',
  'opa_heap_ptr_set',
  'opa_json_dump',
  'opa_json_parse',
  'opa_malloc',
] as const;
type Abi = Readonly<Record<(typeof ABI)[number], (...values: number[]) => number>>;

const isAbi = (exports: Readonly<Record<string, unknown>>): exports is Abi =>
  ABI.every((name) => typeof exports[name] === 'function');

/** 512 MB: what one evaluation may take at most. */
const MAX_INSTANCE_PAGES = 8_192;
/** As text: what is made of it takes many times as much. */
const MAX_RESULT_BYTES = 16 * 1024 * 1024;
/** `JSON.stringify` escapes a lone surrogate so; the evaluator cannot read it. */
const LONE_SURROGATE = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;

/** Result of an evaluation; anything made of it is to be frozen. */
export interface PolicyAnswer {
  readonly result: unknown;
}

/** A parsed document, and where the heap that holds it ends. */
interface Parsed {
  readonly address: number;
  readonly heapEnd: number;
}

/**
 * One instance of the compiled policy. Its heap holds the data document, then the input, then what an evaluation makes, which
 * the next evaluation overwrites. An instance that threw anything may answer wrongly: it must not be used again.
 */
export class PolicyInstance {
  /** Their numbers, by name. */
  readonly entrypoints: ReadonlyMap<string, number>;
  readonly #abi: Abi;
  readonly #memory: WebAssembly.Memory;
  readonly #heapStart: number;
  /** The minor version of its ABI; 0 where it states none. */
  readonly minorVersion: number;
  #bytes: Buffer;
  /** Bytes of memory that V8 knows of. */
  #counted: number;
  #data: Parsed = { address: 0, heapEnd: 0 };
  /** The input that is in memory. */
  #input: { readonly text: string; readonly parsed: Parsed } | null = null;
  /** The last answer about that input. */
  #last: { readonly entrypoint: string; readonly text: string; readonly answer: PolicyAnswer } | null = null;

  /**
   * Every module is loaded into a memory of one size, which grows afterwards. WebAssembly is deterministic: a module whose load harmed
   * nobody in its trial does the same wherever it is loaded again.
   */
  constructor(module: WebAssembly.Module, pages: number) {
    const policy = loadPolicySync(module, { initial: BASE_PAGES, maximum: MAX_INSTANCE_PAGES });
    const { mem: memory, wasmInstance: instance } = policy;
    if (!('exports' in instance) || !isAbi(instance.exports)) throw new TypeError('The module is no policy.');
    this.#abi = instance.exports;
    this.#memory = memory;
    this.#counted = BASE_PAGES * PAGE_BYTES;
    this.minorVersion = policy.minorVersion ?? 0;
    this.entrypoints = numbersIn(policy.entrypoints);
    this.#heapStart = this.#abi.opa_heap_ptr_get();
    const missing = Math.min(pages, MAX_INSTANCE_PAGES) - memory.buffer.byteLength / PAGE_BYTES;
    if (missing > 0) memory.grow(missing);
    this.#bytes = Buffer.from(memory.buffer);
    this.#countGrowth();
  }

  get pages(): number {
    return this.#view().byteLength / PAGE_BYTES;
  }

  /** The builtins that the module wants from its host, as JSON text; one is missed only when it is called. */
  get hostBuiltins(): string {
    return this.#dump(this.#abi.builtins());
  }

  /** Loads a data document in place of the one before. */
  load(text: string): void {
    this.#input = null;
    try {
      this.#data = this.#parse(text, this.#heapStart);
    } finally {
      this.#countGrowth();
    }
  }

  /**
   * Evaluates an entrypoint for an input, JSON text; an undefined value is a TypeError. Only what is as the last time is not read
   * again: an equal input stays parsed, and an equal result for it is the same answer.
   */
  evaluate(entrypoint: string, text: string): PolicyAnswer {
    const number = this.entrypoints.get(entrypoint);
    if (number === undefined) throw new TypeError(`The policy lacks the entrypoint ${entrypoint}.`);
    try {
      return this.#answer(entrypoint, this.#evaluated(number, text));
    } finally {
      this.#countGrowth();
    }
  }

  #evaluated(number: number, text: string): string {
    const abi = this.#abi;
    const { address, heapEnd } = this.#parsedInput(text);
    abi.opa_heap_ptr_set(heapEnd);
    const context = abi.opa_eval_ctx_new();
    abi.opa_eval_ctx_set_input(context, address);
    abi.opa_eval_ctx_set_data(context, this.#data.address);
    abi.opa_eval_ctx_set_entrypoint(context, number);
    abi.eval(context);
    return this.#dump(abi.opa_eval_ctx_get_result(context));
  }

  #parsedInput(text: string): Parsed {
    if (this.#input?.text === text) return this.#input.parsed;
    if (LONE_SURROGATE.test(text)) throw new TypeError('The input holds a lone surrogate.');
    const parsed = this.#parse(text, this.#data.heapEnd);
    this.#input = { text, parsed };
    this.#last = null;
    return parsed;
  }

  #answer(entrypoint: string, text: string): PolicyAnswer {
    const last = this.#last;
    if (last !== null && last.entrypoint === entrypoint && last.text === text) return last.answer;
    const answer = onlyResult(JSON.parse(text));
    this.#last = { entrypoint, text, answer };
    return answer;
  }

  /** Writes JSON text to the heap and parses it there. What the heap held from `heapStart` on is lost. */
  #parse(text: string, heapStart: number): Parsed {
    const abi = this.#abi;
    abi.opa_heap_ptr_set(heapStart);
    const length = Buffer.byteLength(text);
    const source = abi.opa_malloc(length);
    this.#view().write(text, source);
    const address = abi.opa_json_parse(source, length);
    if (address === 0) throw new TypeError('A document is no JSON.');
    return { address, heapEnd: abi.opa_heap_ptr_get() };
  }

  /** A value in memory as JSON text. */
  #dump(value: number): string {
    const start = this.#abi.opa_json_dump(value);
    const bytes = this.#view();
    const end = bytes.indexOf(0, start);
    if (end - start > MAX_RESULT_BYTES) throw new TypeError(`A result is larger than ${MAX_RESULT_BYTES} bytes.`);
    return bytes.toString('utf8', start, end);
  }

  /**
   * V8 does not count what a memory grows by, and so lets memories of 512 MB pile up that nobody uses any more (10 GB were measured).
   * A buffer of as many bytes, which is never touched, counts, and it collects both.
   */
  #countGrowth(): void {
    const { byteLength } = this.#memory.buffer;
    if (byteLength <= this.#counted) return;
    void new ArrayBuffer(byteLength - this.#counted);
    this.#counted = byteLength;
  }

  /** When memory grows it gets another buffer, and the old one has no length any more. */
  #view(): Buffer {
    if (this.#bytes.byteLength === 0) this.#bytes = Buffer.from(this.#memory.buffer);
    return this.#bytes;
  }
}

const numbersIn = (entrypoints: object): ReadonlyMap<string, number> =>
  new Map(Object.entries(entrypoints).filter((entry): entry is [string, number] => typeof entry[1] === 'number'));

/** An undefined entrypoint gives an empty result set. */
function onlyResult(results: unknown): PolicyAnswer {
  if (!Array.isArray(results) || results.length !== 1) throw new TypeError('The policy gave no single result.');
  const [first]: unknown[] = results;
  if (typeof first !== 'object' || first === null || !('result' in first)) throw new TypeError('The result is empty.');
  return first;
}

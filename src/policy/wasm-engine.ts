import { createRequire } from 'node:module';
import type { LoadedPolicy } from '@open-policy-agent/opa-wasm';
import type { DataDocument } from './data-document.ts';
import { PolicyFailure } from './policy-failure.ts';

/** The SDK's ES module does not export `loadPolicySync`; its CommonJS face does. */
const { loadPolicySync }: typeof import('@open-policy-agent/opa-wasm') = createRequire(import.meta.url)(
  '@open-policy-agent/opa-wasm',
);

export const ENTRYPOINTS = ['gateway/authz/decision', 'gateway/authz/permitted'] as const;
type Entrypoint = (typeof ENTRYPOINTS)[number];

export interface EngineOptions {
  /** Data documents kept loaded at once. */
  readonly maxInstances?: number;
}

export interface WasmEngine {
  /**
   * The value of an entrypoint for one input and data document.
   * @throws PolicyFailure whenever the evaluation does not end in exactly one value.
   */
  evaluate(entrypoint: Entrypoint, input: object, data: DataDocument): unknown;
  /** Drops every instance; evaluating afterwards is a PolicyFailure. */
  close(): void;
}

const PAGE_BYTES = 65_536;
/** Memory for the module itself, inputs and results. */
const BASE_PAGES = 40;
/** A parsed document takes about 11 times its text; growing page by page while it loads takes quadratic time. */
const HEAP_PER_TEXT = 12;
/** Memory never shrinks, so the pool is bounded by pages too: 512 MB. */
const MAX_PAGES = 8_192;
const ENTERED = 'The policy engine was entered while it evaluates.';
/** `JSON.stringify` escapes a lone surrogate so; the evaluator cannot read it. */
const LONE_SURROGATE = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;

/**
 * Evaluates one compiled policy by a pool of its instances, found by the digest of the data loaded into each. An instance
 * that threw anything is never used again, because it may answer from overwritten data.
 * @throws PolicyFailure when the module is not a policy of ours.
 */
export function createWasmEngine(wasm: Uint8Array, { maxInstances = 64 }: EngineOptions = {}): WasmEngine {
  const pool = createPool(compile(wasm), maxInstances);
  let refusal: string | null = null;
  return {
    evaluate(entrypoint, input, data) {
      if (refusal !== null) throw new PolicyFailure(refusal);
      refusal = ENTERED;
      try {
        const text = JSON.stringify(input);
        if (LONE_SURROGATE.test(text)) throw new TypeError('The input holds a lone surrogate.');
        const instance = pool.take(data);
        const value = onlyResult(instance.evaluate(utf8(text), entrypoint));
        pool.giveBack(data, instance);
        return value;
      } catch (cause) {
        throw new PolicyFailure('The policy could not be evaluated.', cause);
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
  take(data: DataDocument): LoadedPolicy;
  giveBack(data: DataDocument, instance: LoadedPolicy): void;
  clear(): void;
}

/** Where the document is not loaded yet, the least recently used instance is loaded again, if its memory suits the document. */
function createPool(module: WebAssembly.Module, maxInstances: number): Pool {
  const instances = new Map<string, LoadedPolicy>();
  /** Of the instances that are in the pool. */
  let pooledPages = 0;

  /** Removes the least recently used instances until there is room for one more; gives the last one removed. */
  function makeRoom(pages: number): LoadedPolicy | undefined {
    let evicted: LoadedPolicy | undefined;
    for (const [digest, instance] of instances) {
      if (instances.size < maxInstances && pooledPages + pages <= MAX_PAGES) break;
      instances.delete(digest);
      pooledPages -= pagesOf(instance);
      evicted = instance;
    }
    return evicted;
  }

  return {
    take({ digest, text }) {
      const found = instances.get(digest);
      if (found !== undefined) {
        instances.delete(digest);
        pooledPages -= pagesOf(found);
        return found;
      }
      const bytes = utf8(text);
      const pages = BASE_PAGES + Math.ceil((HEAP_PER_TEXT * bytes.byteLength) / PAGE_BYTES);
      const evicted = makeRoom(pages);
      const suits = evicted !== undefined && pagesOf(evicted) >= pages && pagesOf(evicted) <= 4 * pages;
      const instance = suits ? evicted : instantiate(module, pages);
      instance.setData(bytes);
      return instance;
    },
    giveBack({ digest }, instance) {
      instances.set(digest, instance);
      pooledPages += pagesOf(instance);
    },
    clear() {
      instances.clear();
      pooledPages = 0;
    },
  };
}

/** Bytes in a buffer of exactly their length, the only form that the SDK takes as JSON text. */
function utf8(text: string): ArrayBuffer {
  const buffer = new ArrayBuffer(Buffer.byteLength(text));
  Buffer.from(buffer).write(text);
  return buffer;
}

const pagesOf = (instance: LoadedPolicy): number => instance.mem.buffer.byteLength / PAGE_BYTES;

const instantiate = (module: WebAssembly.Module, pages: number): LoadedPolicy =>
  loadPolicySync(module, { initial: pages });

/** Compiles the module and checks that it offers our entrypoints and asks for no builtin of the host. */
function compile(wasm: Uint8Array): WebAssembly.Module {
  try {
    const module = new WebAssembly.Module(wasm);
    const instance = instantiate(module, BASE_PAGES);
    const entrypoints = Object.keys(instance.entrypoints).sort();
    if (entrypoints.join() !== ENTRYPOINTS.join()) throw new TypeError(`Entrypoints: ${entrypoints.join(', ')}.`);
    const builtins = hostBuiltins(instance);
    if (builtins !== '{}') throw new TypeError(`The policy asks for builtins of the host: ${builtins}.`);
    return module;
  } catch (cause) {
    throw new PolicyFailure('The compiled policy cannot be used.', cause);
  }
}

/** The module's own list of builtins that it lacks, as JSON text; the SDK misses them only when they are called. */
function hostBuiltins({ wasmInstance, mem }: LoadedPolicy): string {
  if (!('exports' in wasmInstance)) throw new TypeError('The SDK gave no instance.');
  const { builtins, opa_json_dump: dump } = wasmInstance.exports;
  if (typeof builtins !== 'function' || typeof dump !== 'function') throw new TypeError('The module is not a policy.');
  const address: unknown = dump(builtins());
  if (typeof address !== 'number') throw new TypeError('The module is not a policy.');
  const memory = Buffer.from(mem.buffer);
  return memory.toString('utf8', address, memory.indexOf(0, address));
}

/** An undefined entrypoint gives an empty result set. */
function onlyResult(results: unknown): unknown {
  if (!Array.isArray(results) || results.length !== 1) throw new TypeError('The policy gave no single result.');
  const [first]: unknown[] = results;
  if (typeof first !== 'object' || first === null || !('result' in first)) throw new TypeError('The result is empty.');
  return first.result;
}

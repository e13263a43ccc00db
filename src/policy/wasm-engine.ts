import type { DataDocument } from './data-document.ts';
import { inputText } from './input-document.ts';
import { moduleFault } from './module-bounds.ts';
import { PolicyFailure } from './policy-failure.ts';
import { type Answer, PolicyInstance } from './policy-instance.ts';

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
  evaluate(entrypoint: Entrypoint, input: object, data: DataDocument): Answer;
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
  take(data: DataDocument): PolicyInstance;
  giveBack(data: DataDocument, instance: PolicyInstance): void;
  clear(): void;
}

/**
 * Where the document is not loaded yet, an instance is loaded again, if its memory suits the document: for one that was asked for
 * lately the least recently used, for a stranger that of the stranger before, so that keys that call once push nothing out and
 * keep to memory that the processor has at hand.
 */
function createPool(module: WebAssembly.Module, maxInstances: number, ownData: string | undefined): Pool {
  const instances = new Map<string, PolicyInstance>();
  /** Of the instances that are in the pool. */
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
      if (instances.size < maxInstances && pooledPages + pages <= MAX_PAGES) break;
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

/** OPA's ABI: the functions that we call are those of this version, and older minor ones leak. */
const ABI_VERSION = { major: 1, minor: 2 };

/** Compiles the module and checks its bounds and its ABI, that it offers our entrypoints and asks for no builtin of the host. */
function compile(wasm: Uint8Array): WebAssembly.Module {
  try {
    const module = new WebAssembly.Module(wasm);
    const fault = moduleFault(wasm);
    if (fault !== null) throw new TypeError(fault);
    const instance = new PolicyInstance(module, BASE_PAGES);
    const { major, minor } = instance.abiVersion;
    if (major !== ABI_VERSION.major || minor < ABI_VERSION.minor) {
      throw new TypeError(`The policy has version ${major}.${minor} of OPA's ABI; it must be 1.2 or a later 1.`);
    }
    const entrypoints = [...instance.entrypoints.keys()].sort();
    if (entrypoints.join() !== ENTRYPOINTS.join())
      throw new TypeError(`Its entrypoints are ${entrypoints.join(', ') || 'none'}.`);
    const { hostBuiltins } = instance;
    if (hostBuiltins !== '{}') throw new TypeError(`The policy asks for builtins of the host: ${hostBuiltins}.`);
    return module;
  } catch (cause) {
    throw new PolicyFailure('The compiled policy cannot be used.', cause);
  }
}

/** The part of the WebAssembly JavaScript interface that the policy engine and OPA's loader use; Node's own types lack it. */
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array);
    static imports(module: Module): readonly { readonly name: string }[];
  }
  interface MemoryDescriptor {
    initial: number;
    maximum?: number;
  }
  class Memory {
    constructor(descriptor: MemoryDescriptor);
    readonly buffer: ArrayBuffer;
    /** @param pages that are added */
    grow(pages: number): number;
  }
  class Instance {
    constructor(module: Module, imports: Readonly<Record<string, Readonly<Record<string, unknown>>>>);
    readonly exports: Readonly<Record<string, unknown>>;
  }
  interface WebAssemblyInstantiatedSource {
    readonly instance: Instance;
    readonly module: Module;
  }
}

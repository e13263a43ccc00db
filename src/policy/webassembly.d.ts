/** The part of the WebAssembly JavaScript interface that the policy engine uses, and OPA's SDK in tests; Node's own types lack it. */
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array);
  }
  interface MemoryDescriptor {
    initial: number;
    maximum?: number;
  }
  class Memory {
    constructor(descriptor: MemoryDescriptor);
    readonly buffer: ArrayBuffer;
  }
  class Global {
    readonly value: number;
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

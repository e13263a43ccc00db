/** The part of the WebAssembly JavaScript interface that the policy engine and its SDK use; Node's own types lack it. */
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array);
  }
  interface MemoryDescriptor {
    initial: number;
    maximum?: number;
  }
  interface Memory {
    readonly buffer: ArrayBuffer;
  }
  class Global {
    readonly value: number;
  }
  interface Instance {
    readonly exports: Readonly<Record<string, unknown>>;
  }
  interface WebAssemblyInstantiatedSource {
    readonly instance: Instance;
    readonly module: Module;
  }
}

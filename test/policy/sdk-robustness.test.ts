/**
 * What the WASM SDK does with bad input, data and memory: each trap once as it is, so that an SDK that behaves otherwise is
 * noticed, and `wasm-engine.test.ts` has the guards.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { readBundle } from '../../src/policy/bundle.ts';
import { CALL, DENIED, dataOfKey, denyModels, SWIFT } from './policy-call.ts';

const { loadPolicySync }: typeof import('@open-policy-agent/opa-wasm') = createRequire(import.meta.url)(
  '@open-policy-agent/opa-wasm',
);

const module = new WebAssembly.Module(readBundle().wasm);
const DECISION = 'gateway/authz/decision';
const UNDECIDED = [{ result: { permitted: [], violations: [] } }];
const RIGHT = [{ result: DENIED }];

const bytes = (text: string): ArrayBuffer => Uint8Array.from(Buffer.from(text)).buffer;

function denyingPolicy(memory?: WebAssembly.MemoryDescriptor) {
  const policy = loadPolicySync(module, memory);
  policy.setData(bytes(dataOfKey(denyModels('swift-1')).text));
  return policy;
}

/** What is thrown, whatever it is. */
function thrownBy(work: () => unknown): unknown {
  try {
    work();
  } catch (thrown) {
    return thrown;
  }
  throw new Error('Nothing was thrown.');
}

describe('input', () => {
  test.each<[string, unknown]>([
    ['malformed JSON bytes count as no input', bytes('{"action"')],
    ['a Uint8Array is taken as an object', Buffer.from(JSON.stringify(CALL))],
    ['a string is a JSON string, not JSON text', JSON.stringify(CALL)],
    ['null counts as no input', null],
    ['false counts as no input', false],
  ])('%s, without an error', (_, input) => {
    expect(denyingPolicy().evaluate(input, DECISION)).toEqual(UNDECIDED);
  });

  test('bytes after the JSON value are ignored', () => {
    expect(denyingPolicy().evaluate(bytes(`${JSON.stringify(CALL)}]`), DECISION)).toEqual(RIGHT);
  });

  test('NaN arrives as null, an undefined field not at all', () => {
    const input = { ...CALL, candidates: [{ ...SWIFT, input_price: Number.NaN }], client_ip: undefined };
    expect(denyingPolicy().evaluate(input, DECISION)).toEqual(UNDECIDED);
  });

  test('a lone surrogate throws a string', () => {
    expect(thrownBy(() => denyingPolicy().evaluate({ ...CALL, client_ip: '\ud800' }, DECISION))).toBe(
      'illegal string escape character',
    );
  });

  test('invalid UTF-8 throws a string', () => {
    const input = Uint8Array.from([0x22, 0xff, 0x22]).buffer;
    expect(thrownBy(() => denyingPolicy().evaluate(input, DECISION))).toBe('illegal utf-8');
  });

  test('deep nesting overflows the stack, and the next call is right again', () => {
    const policy = denyingPolicy();
    const deep = bytes('['.repeat(100_000) + ']'.repeat(100_000));
    expect(thrownBy(() => policy.evaluate(deep, DECISION))).toBeInstanceOf(RangeError);
    expect(policy.evaluate(CALL, DECISION)).toEqual(RIGHT);
  });

  test.each([['nothing'], ['__proto__'], ['toString']])('an unknown entrypoint (%s) throws a string', (entrypoint) => {
    expect(thrownBy(() => denyingPolicy().evaluate(CALL, entrypoint))).toBe(
      `entrypoint ${entrypoint} is not valid in this instance`,
    );
  });
});

describe('data', () => {
  test.each([
    ['{"subjects":{"key_1":{"enforce":{}', 'failed to parse json value'],
    ['{"subjects":{"key_1":{"enforce":{"deny_models":{"rules":["\\ud800"]}}}}}', 'illegal string escape character'],
  ])(
    'that cannot be loaded (%s) throws a string, and the instance then answers wrongly without an error',
    (text, thrown) => {
      const policy = denyingPolicy();
      expect(thrownBy(() => policy.setData(bytes(text)))).toBe(thrown);
      expect(policy.evaluate(CALL, DECISION)).not.toEqual(RIGHT);
    },
  );

  test('loaded again repairs the instance', () => {
    const policy = denyingPolicy();
    thrownBy(() => policy.setData(bytes('{')));
    policy.setData(bytes(dataOfKey(denyModels('swift-1')).text));
    expect(policy.evaluate(CALL, DECISION)).toEqual(RIGHT);
  });
});

describe('memory', () => {
  test('is the same after thousands of evaluations', () => {
    const policy = denyingPolicy();
    policy.evaluate(CALL, DECISION);
    const before = policy.mem.buffer.byteLength;
    for (let round = 0; round < 5_000; round++) policy.evaluate(CALL, DECISION);
    expect(policy.mem.buffer.byteLength).toBe(before);
  });

  test('holds data and a parsed input unchanged while they are evaluated', () => {
    const policy = denyingPolicy();
    if (!('exports' in policy.wasmInstance)) throw new Error('The SDK gave no instance.');
    const call = (name: string, ...values: number[]): number => Object(policy.wasmInstance).exports[name](...values);
    const input = Buffer.from(
      JSON.stringify({ ...CALL, candidates: [SWIFT, { ...SWIFT, id: 'other', input_price: 1.5 }] }),
    );
    call('opa_heap_ptr_set', policy.dataHeapPtr);
    const source = call('opa_malloc', input.length);
    Buffer.from(policy.mem.buffer).set(input, source);
    const parsed = call('opa_json_parse', source, input.length);
    const end = call('opa_heap_ptr_get');
    const held = () => Buffer.from(policy.mem.buffer).toString('latin1', policy.baseHeapPtr, end);
    const before = held();
    for (const entrypoint of Object.values<number>(policy.entrypoints)) {
      call('opa_heap_ptr_set', end);
      const context = call('opa_eval_ctx_new');
      call('opa_eval_ctx_set_input', context, parsed);
      call('opa_eval_ctx_set_data', context, policy.dataAddr);
      call('opa_eval_ctx_set_entrypoint', context, entrypoint);
      call('eval', context);
      expect(call('opa_heap_ptr_get')).toBeGreaterThan(end);
      expect(held()).toBe(before);
    }
  });

  test('never shrinks after a large document', () => {
    const policy = denyingPolicy();
    policy.setData({ large: 'x'.repeat(2_000_000) });
    const large = policy.mem.buffer.byteLength;
    policy.setData({ subjects: {} });
    expect(policy.mem.buffer.byteLength).toBe(large);
  });

  test('that ends while the host writes the input throws a RangeError, and the next call is right', () => {
    const policy = denyingPolicy({ initial: 5, maximum: 6 });
    const input = { ...CALL, large: 'x'.repeat(400_000) };
    expect(thrownBy(() => policy.evaluate(input, DECISION))).toBeInstanceOf(RangeError);
    expect(policy.evaluate(CALL, DECISION)).toEqual(RIGHT);
  });

  test('that ends while the guest loads data throws a string', () => {
    const policy = denyingPolicy({ initial: 5, maximum: 6 });
    expect(thrownBy(() => policy.setData({ large: 'x'.repeat(500_000) }))).toBe('opa_malloc: failed');
  });
});

describe('builtins of the host', () => {
  const fixture = new URL('../fixtures/policy/host-builtin.wasm.gz', import.meta.url);
  const policy = () => loadPolicySync(new WebAssembly.Module(gunzipSync(readFileSync(fixture))));

  test('that are missing are noticed when they are called, by a plain object', () => {
    expect(thrownBy(() => policy().evaluate(CALL, DECISION))).toEqual({
      message: 'not implemented: built-in function 1: time.now_ns',
    });
  });
});

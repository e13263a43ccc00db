import { readFileSync } from 'node:fs';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { POLICY_DIRECTORY, readBundle } from '../../src/policy/bundle.ts';
import { type DataDocument, dataDocument, PolicyFailure } from '../../src/policy/data-document.ts';
import { createWasmEngine, type WasmEngine } from '../../src/policy/engine.ts';
import { CALL, DENIED, dataOfKey, denyModels } from './policy-call.ts';

const { wasm } = readBundle();
const DECISION = 'gateway/authz/decision';
const denying = dataOfKey(denyModels('swift-1'));
const open = dataOfKey();

function causeOf(work: () => unknown): unknown {
  try {
    work();
  } catch (failure) {
    if (failure instanceof PolicyFailure) return failure.cause;
    throw failure;
  }
  throw new Error('Nothing was thrown.');
}

const decide = (engine: WasmEngine, data: DataDocument, input: object = CALL) =>
  engine.evaluate(DECISION, input, data).result;

describe('the compiled policy', () => {
  test('has exactly two entrypoints', () => {
    const { entrypoints } = JSON.parse(readFileSync(path.join(POLICY_DIRECTORY, 'bundle/manifest.json'), 'utf8'));
    expect(entrypoints).toEqual(['gateway/authz/decision', 'gateway/authz/permitted']);
    expect(() => createWasmEngine(wasm)).not.toThrow();
  });

  test('is refused when it needs a builtin of the host', () => {
    const fixture = new URL('../fixtures/policy/host-builtin.wasm.gz', import.meta.url);
    expect(causeOf(() => createWasmEngine(gunzipSync(readFileSync(fixture))))).toEqual(
      new TypeError('The policy asks for builtins of the host: {"time.now_ns":1}.'),
    );
  });

  test('is refused when it is no WebAssembly', () => {
    expect(() => createWasmEngine(Buffer.from('no module'))).toThrow(PolicyFailure);
  });
});

describe('the pool', () => {
  test('answers by the right document, whatever was evicted in between', () => {
    const engine = createWasmEngine(wasm, { maxInstances: 2 });
    const documents = ['swift-1', 'a', 'b', 'c'].map((entry) => dataOfKey(denyModels(entry)));
    for (let round = 0; round < 50; round++) {
      const index = (round * 7) % documents.length;
      const data = documents[index] ?? open;
      const denied = data === documents[0];
      expect(decide(engine, data)).toEqual(denied ? DENIED : { permitted: ['acme/swift-1'], violations: [] });
    }
  });

  test('keeps what is asked for again, however many ask once', () => {
    const engine = createWasmEngine(wasm, { maxInstances: 2 });
    const ask = (data: DataDocument) => engine.evaluate(DECISION, CALL, data);
    ask(denying);
    const kept = ask(denying);
    for (const entry of ['a', 'b', 'c', 'd', 'e']) ask(dataOfKey(denyModels(entry)));
    // Documents that are still loaded give the same answer again.
    expect(ask(denying)).toBe(kept);
  });

  test('keeps as many documents as are asked for in turn, from their second time on', () => {
    const engine = createWasmEngine(wasm, { maxInstances: 3 });
    const documents = ['a', 'b', 'c'].map((entry) => dataOfKey(denyModels(entry)));
    const [, second, third] = [1, 2, 3].map(() => documents.map((data) => engine.evaluate(DECISION, CALL, data)));
    expect(third?.map((answer, at) => answer === second?.[at])).toEqual([true, true, true]);
  });

  test('loads documents of any size, and small ones after large ones', () => {
    const engine = createWasmEngine(wasm, { maxInstances: 1 });
    const many = Array.from({ length: 20_000 }, (_, index) => `model-${index}`);
    const large = dataOfKey(denyModels('swift-1', ...many));
    for (const data of [denying, large, denying]) expect(decide(engine, data)).toEqual(DENIED);
  });
});

describe('after a failure', () => {
  const broken: DataDocument = { text: '{"subjects":{"key_1":{"enforce":{}', digest: 'broken' };

  test('of loading data, the next evaluation is right', () => {
    const engine = createWasmEngine(wasm, { maxInstances: 1 });
    expect(decide(engine, denying)).toEqual(DENIED);
    expect(causeOf(() => decide(engine, broken))).toEqual(new TypeError('A document is no JSON.'));
    expect(causeOf(() => decide(engine, broken))).toEqual(new TypeError('A document is no JSON.'));
    expect(decide(engine, denying)).toEqual(DENIED);
  });

  test('of evaluating, the next evaluation is right', () => {
    const engine = createWasmEngine(wasm);
    const unreadable = { toJSON: () => nested(20_000) };
    expect(decide(engine, denying)).toEqual(DENIED);
    expect(causeOf(() => decide(engine, denying, unreadable))).toBeInstanceOf(RangeError);
    expect(decide(engine, denying)).toEqual(DENIED);
  });
});

describe('the engine refuses', () => {
  test.each<[string, unknown]>([
    ['in a value', { ...CALL, client_ip: 'a\ud800' }],
    ['in a key', { ...CALL, '\udfff': 1 }],
    ['after backslashes', { ...CALL, client_ip: '\\\\\ud9ff' }],
  ])('a lone surrogate %s, before it reaches an instance', (_, input) => {
    const engine = createWasmEngine(wasm);
    expect(causeOf(() => decide(engine, denying, Object(input)))).toEqual(
      new TypeError('The input holds a lone surrogate.'),
    );
  });

  test('nothing that only looks like a lone surrogate', () => {
    const engine = createWasmEngine(wasm);
    expect(decide(engine, denying, { ...CALL, note: '\\ud800 \u{1f600}' })).toEqual(DENIED);
  });

  test('an undefined result', () => {
    const engine = createWasmEngine(wasm);
    expect(causeOf(() => engine.evaluate('gateway/authz/permitted', {}, denying))).toEqual(
      new TypeError('The policy gave no single result.'),
    );
  });

  test('an input without a JSON form', () => {
    const engine = createWasmEngine(wasm);
    expect(() => decide(engine, denying, () => null)).toThrow(PolicyFailure);
  });

  test('to be entered while it evaluates', () => {
    const engine = createWasmEngine(wasm);
    const reentrant = { toJSON: () => decide(engine, open) };
    expect(causeOf(() => decide(engine, denying, reentrant))).toBeInstanceOf(PolicyFailure);
    expect(decide(engine, denying)).toEqual(DENIED);
  });

  test('to evaluate once it is closed', () => {
    const engine = createWasmEngine(wasm);
    engine.close();
    expect(() => decide(engine, denying)).toThrow(PolicyFailure);
  });
});

test('a document is the same whatever the order of its subjects', () => {
  const rules = '{"enforce":{}}';
  expect(
    dataDocument([
      { id: 'b', rules },
      { id: 'a', rules },
    ]),
  ).toEqual(
    dataDocument([
      { id: 'a', rules },
      { id: 'b', rules },
    ]),
  );
});

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level++) value = [value];
  return value;
}

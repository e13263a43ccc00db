/**
 * One instance of our engine is asked again and again, with other inputs, other data and traps in between: it must answer as the
 * SDK does by an instance that was asked nothing else. What stays parsed in memory may not show.
 */
import { deepStrictEqual } from 'node:assert/strict';
import { createRequire } from 'node:module';
import fc from 'fast-check';
import { test } from 'vitest';
import { readBundle } from '../../src/policy/bundle.ts';
import { type DataDocument, PolicyFailure } from '../../src/policy/data-document.ts';
import { createWasmEngine, ENTRYPOINTS } from '../../src/policy/engine.ts';
import { policyCase } from './arbitraries.ts';
import { dataOf, inputOf } from './production.ts';
import { propertyRuns, propertyTimeout } from './property-runs.ts';

const { loadPolicySync }: typeof import('@open-policy-agent/opa-wasm') = createRequire(import.meta.url)(
  '@open-policy-agent/opa-wasm',
);

const RUNS = 200;
const { wasm } = readBundle();
const module = new WebAssembly.Module(wasm);
const kept = createWasmEngine(wasm, { maxInstances: 1 });

interface Question {
  readonly entrypoint: (typeof ENTRYPOINTS)[number];
  readonly input: object;
  readonly data: DataDocument;
}

const TRAP_INPUTS = [
  {},
  { subjects: [] },
  { note: '\ud800' },
  { toJSON: () => nested(20_000) },
  { toJSON: () => undefined },
];
const TRAP_DATA = ['', '{"subjects":{"key_1":{"enforce":{}', '{"subjects":{"key_1":{"enforce":["\\ud800"]}}}', '[]'];

const entrypoint = fc.constantFrom(...ENTRYPOINTS);

/** Inputs and data of a few cases in every combination, as their subjects have the same ids, now and then a trap. */
const questions: fc.Arbitrary<Question[]> = fc.array(policyCase, { minLength: 2, maxLength: 4 }).chain((cases) => {
  const question = fc.record({
    entrypoint,
    input: fc.constantFrom(...cases.map(inputOf)),
    data: fc.constantFrom(...cases.map(({ subjects }) => dataOf(subjects))),
  });
  const trap = fc.oneof(
    fc.record({ input: fc.constantFrom(...TRAP_INPUTS) }),
    fc.record({ data: fc.constantFrom(...TRAP_DATA).map((text) => ({ text, digest: text })) }),
  );
  const trapped = fc.tuple(question, trap).map(([asked, change]) => ({ ...asked, ...change }));
  const repeated = fc.tuple(fc.oneof({ weight: 9, arbitrary: question }, trapped), fc.integer({ min: 1, max: 3 }));
  return fc
    .array(repeated, { minLength: 10, maxLength: 40 })
    .map((steps) => steps.flatMap(([asked, times]) => Array.from({ length: times }, () => asked)));
});

test(
  'one instance answers every question as a fresh one of the SDK does',
  () => {
    fc.assert(
      fc.property(questions, (asked) => {
        const fresh = new Map<Question, unknown>();
        for (const question of asked) {
          if (!fresh.has(question)) fresh.set(question, freshAnswer(question));
          deepStrictEqual(keptAnswer(question), fresh.get(question));
        }
      }),
      propertyRuns<[Question[]]>(RUNS),
    );
  },
  // A case asks some fifty questions.
  10 * propertyTimeout(RUNS),
);

const FAILED = 'failed';

function keptAnswer({ entrypoint, input, data }: Question): unknown {
  try {
    return kept.evaluate(entrypoint, input, data).result;
  } catch (failure) {
    if (failure instanceof PolicyFailure) return FAILED;
    throw failure;
  }
}

function freshAnswer({ entrypoint, input, data }: Question): unknown {
  const policy = loadPolicySync(module);
  try {
    policy.setData(bytes(data.text));
    const results: unknown = policy.evaluate(bytes(JSON.stringify(input)), entrypoint);
    return Array.isArray(results) && results.length === 1 ? results[0].result : FAILED;
  } catch {
    return FAILED;
  }
}

const bytes = (text: string): ArrayBuffer => Uint8Array.from(Buffer.from(text)).buffer;

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level++) value = [value];
  return value;
}

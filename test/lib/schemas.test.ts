// Validators of the schemas: what ajv compiles, when, and where its code is kept.
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keptCode, readTitledSchemas, schemaTexts, validator, validatorCode } from '../../src/lib/schemas.ts';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'validators-'));
});

afterAll(() => rmSync(folder, { recursive: true }));

/** The one file that a cache keeps. */
function onlyFile(cache: string): string {
  const files = readdirSync(cache, { recursive: true, encoding: 'utf8' }).map((name) => path.join(cache, name));
  const [file = '', ...others] = files.filter((name) => statSync(name).isFile());
  expect(others).toEqual([]);
  return file;
}

/** ajv numbers its functions in the order in which it makes them. */
const unnumbered = (code: string): string => code.replaceAll(/\d+/g, '');

describe('the schemas', () => {
  it.each([...schemaTexts()])('%s is a JSON Schema but for our `one` and `many`', (_name, text) => {
    const ajv = new Ajv2020({ strict: false });
    expect(ajv.validateSchema(JSON.parse(text)), ajv.errorsText()).toBe(true);
  });

  it('compile in strict mode, each by its title', () => {
    const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true, keywords: ['topic'] });
    const titled = readTitledSchemas();
    for (const { title, schema } of titled) ajv.addSchema({ ...schema, $id: title });
    for (const { title } of titled) expect(ajv.getSchema(title), title).toBeDefined();
  });
});

describe('a validator', () => {
  it('is one function for each title', () => {
    expect(validator('KeyCreate')).toBe(validator('KeyCreate'));
    expect(validator('KeyCreate')).not.toBe(validator('KeyPatch'));
  });

  it('reports the fault of its latest call alone', () => {
    const validate = validator('KeyCreate');
    expect(validate({})).toBe(false);
    expect(validate.errors).toEqual([
      {
        instancePath: '',
        schemaPath: '#/required',
        keyword: 'required',
        params: { missingProperty: 'projectId' },
        message: "must have required property 'projectId'",
      },
    ]);
    expect(validate({ projectId: 'prj_1' })).toBe(true);
    expect(validate.errors).toBe(null);
  });

  it('of an unknown title does not compile', () => {
    // @ts-expect-error
    const validate = validator('KeyCraete');
    expect(() => validate({})).toThrow('no schema has the title KeyCraete');
  });
});

describe('the code of a validator', () => {
  it('is kept in the cache, and read from there', () => {
    const cache = path.join(folder, 'kept');
    const code = keptCode('BudgetPatch', cache);
    expect(unnumbered(code)).toBe(unnumbered(validatorCode('BudgetPatch')));
    const file = onlyFile(cache);
    expect([path.basename(file), readFileSync(file, 'utf8')]).toEqual(['BudgetPatch.js', code]);
    writeFileSync(file, 'module.exports = () => true;');
    expect(keptCode('BudgetPatch', cache)).toBe('module.exports = () => true;');
  });

  it('is made where the cache cannot be written', () => {
    const cache = path.join(folder, 'a-file');
    writeFileSync(cache, '');
    expect(unnumbered(keptCode('BudgetPatch', cache))).toBe(unnumbered(validatorCode('BudgetPatch')));
  });

  it('is made without a cache', () => {
    expect(unnumbered(keptCode('BudgetPatch', undefined))).toBe(unnumbered(validatorCode('BudgetPatch')));
  });
});

// Types, the recorded contract and the tables of the pages are what the schemas and the program have, and schemas keep to the house's
// rules.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { contract } from '../scripts/contract.ts';
import { generateCode } from '../scripts/generate.ts';
import { fillPages } from '../scripts/pages/fill-pages.ts';
import { terminalPictures } from '../scripts/pages/terminal-pictures.ts';
import { readTitledSchemas } from '../src/lib/schemas.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const schemaFiles = readdirSync(path.join(root, 'schemas'), { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.json'),
);
const read = (...names: string[]): string => readFileSync(path.join(root, ...names), 'utf8');

describe('generated files', () => {
  it('are what `npm run generate` writes', async () => {
    const code = await generateCode();
    const present = readdirSync(path.join(root, 'src/generated')).map((name) => `src/generated/${name}`);
    expect([...code.keys()].sort()).toEqual(present.sort());
    for (const [name, content] of [...code, ...fillPages(), ...terminalPictures()]) {
      expect(content === read(name), `${name} is stale: run \`npm run generate\``).toBe(true);
    }
  });

  it('are the same bytes each time', async () => {
    expect([...(await generateCode()), ...fillPages()]).toEqual([...(await generateCode()), ...fillPages()]);
  });

  it('hold one type for each title', () => {
    const titles = readTitledSchemas().map(({ title }) => title);
    const declared = [...read('src/generated/types.ts').matchAll(/^export (?:interface|type) (\w+)/gm)].map(
      ([, name]) => name,
    );
    expect(declared.sort()).toEqual([...titles, 'Schemas'].sort());
  });
});

it('the recorded contract (OpenAPI documents, faults of wrong bodies) is the contract', () => {
  expect(contract() === read('test/schemas/contract.json'), 'it is stale: run `npm run generate`').toBe(true);
});

describe('schemas', () => {
  it.each(schemaFiles)('%s names itself by its path, which is no address', (name) => {
    expect(JSON.parse(read('schemas', name))).toMatchObject({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $id: name.split(path.sep).join('/'),
    });
  });
});

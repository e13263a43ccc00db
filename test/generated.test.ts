// src/generated is what the schemas say, the tables of the pages are what the program has, and the schemas keep to the house's rules.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { generateCode } from '../scripts/generate.ts';
import { fillPages } from '../scripts/pages/fill-pages.ts';
import { terminalPictures } from '../scripts/pages/terminal-pictures.ts';
import { readTitledSchemas } from '../scripts/schema-set.ts';
import * as validators from '../src/generated/validators.js';

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

  it('hold one type and one validator for each title', () => {
    const titles = readTitledSchemas().map(({ title }) => title);
    const declared = [...read('src/generated/types.ts').matchAll(/^export (?:interface|type) (\w+)/gm)].map(
      ([, name]) => name,
    );
    expect(declared.sort()).toEqual([...titles].sort());
    expect(Object.keys(validators).sort()).toEqual(titles.map((title) => `validate${title}`).sort());
  });
});

describe('schemas', () => {
  it.each(schemaFiles)('%s names itself by its path, which is no address', (name) => {
    expect(JSON.parse(read('schemas', name))).toMatchObject({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $id: name.split(path.sep).join('/'),
    });
  });
});

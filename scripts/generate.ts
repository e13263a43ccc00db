// Writes src/generated from the JSON Schemas, the tables of the pages from what the program itself reads, and their pictures.
// `--check` writes nothing, names the stale files and exits 1.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gateway } from '../src/http/operations/gateway-operations.ts';
import { management } from '../src/http/operations/management-operations.ts';
import type { Listener } from '../src/http/operations/operation.ts';
import { format } from './format.ts';
import { openApiDocument } from './openapi/document.ts';
import { referencePage } from './openapi/reference.ts';
import { terminalPictures } from './pages/terminal-pictures.ts';
import { writeDeclarations, writeTypes, writeValidators } from './schema-code.ts';
import { readTitledSchemas, type TitledSchema } from './schema-set.ts';

const root = path.join(import.meta.dirname, '..');

/** What a listener can do, for programs and for people. */
function describe(name: string, listener: Listener, schemas: readonly TitledSchema[]): [string, string][] {
  const document = openApiDocument(listener, schemas);
  return [
    [`openapi-${name}.json`, format(`openapi-${name}.json`, JSON.stringify(document))],
    [`reference-${name}.html`, referencePage(document)],
  ];
}

/** The files of src/generated as they should be, by their paths from the root. The same schemas give the same bytes. */
export async function generateCode(): Promise<Map<string, string>> {
  const schemas = readTitledSchemas();
  const files: [string, string][] = [
    ['types.ts', await writeTypes(schemas)],
    ['validators.js', writeValidators(schemas)],
    ['validators.d.ts', writeDeclarations(schemas)],
    ...describe('gateway', gateway, schemas),
    ...describe('management', management, schemas),
  ];
  return new Map(files.map(([name, content]) => [`src/generated/${name}`, content]));
}

/** The pages are made of the program, which may load only with the code that was generated before. */
async function generatePages(): Promise<Map<string, string>> {
  const { fillPages } = await import('./pages/fill-pages.ts');
  return new Map([...fillPages(), ...terminalPictures()]);
}

if (import.meta.main) {
  mkdirSync(path.join(root, 'src/generated'), { recursive: true });
  for (const generate of [generateCode, generatePages]) {
    const stale = [...(await generate())].filter(([name, content]) => {
      const file = path.join(root, name);
      return !existsSync(file) || readFileSync(file, 'utf8') !== content;
    });
    if (stale.length > 0 && process.argv.includes('--check')) {
      for (const [name] of stale) console.error(`${name} is stale: run \`npm run generate\``);
      process.exitCode = 1;
      break;
    }
    for (const [name, content] of stale) writeFileSync(path.join(root, name), content);
  }
}

// Writes src/generated/types.ts from the JSON Schemas, the tables of the pages from what the program itself reads, and their pictures.
// `--check` writes nothing, names the stale files and exits 1.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readTitledSchemas } from '../src/lib/schemas.ts';
import { terminalPictures } from './pages/terminal-pictures.ts';
import { writeTypes } from './schema-types.ts';

const root = path.join(import.meta.dirname, '..');

/** The files of src/generated as they should be, by their paths from the root. The same schemas give the same bytes. */
export async function generateCode(): Promise<Map<string, string>> {
  return new Map([['src/generated/types.ts', await writeTypes(readTitledSchemas())]]);
}

/** The pages are made of the program, which may load only with the code that was generated before. */
async function generatePages(): Promise<Map<string, string>> {
  const { fillPages } = await import('./pages/fill-pages.ts');
  const { contract } = await import('./contract.ts');
  return new Map([['test/schemas/contract.json', contract()], ...fillPages(), ...terminalPictures()]);
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

import { readdirSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Catalog } from '../../catalog/catalog.ts';
import { makeFolders } from '../../lib/files.ts';
import { locating } from '../fixtures/fixture-rules.ts';
import { FixtureFault, type FixtureSources, MAX_EXPORT_BYTES } from '../fixtures/fixture-source.ts';
import type { World } from '../world/world.ts';
import { readWorldDocument } from '../world/world-document.ts';
import type { ExportFiles } from './export-bundle.ts';

const BLOCK = 512;

/** Writes an export as a `.tar.gz` file, replacing it, or into a folder that is empty or not there yet. @throws Error otherwise */
export function writeExport(target: string, files: ExportFiles): void {
  if (/\.(tar\.gz|tgz)$/.test(target)) {
    writeFileSync(target, tarGz(files));
    return;
  }
  const found = statSync(target, { throwIfNoEntry: false });
  if (found !== undefined && (!found.isDirectory() || readdirSync(target).length > 0)) {
    throw new Error(`${target} is there already and is not an empty folder.`);
  }
  for (const [name, text] of files) {
    const file = path.join(target, name);
    makeFolders(path.dirname(file));
    writeFileSync(file, text);
  }
}

/** A tar archive (ustar), compressed. Equal files give equal bytes: times are the epoch, owners are nobody. */
export function tarGz(files: ReadonlyMap<string, string | Uint8Array>): Buffer {
  const blocks = [...files].flatMap(([name, file]) => {
    const content = typeof file === 'string' ? Buffer.from(file) : file;
    const padding = Buffer.alloc((BLOCK - (content.byteLength % BLOCK)) % BLOCK);
    return [header(name, content.byteLength), content, padding];
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]));
}

function header(name: string, size: number): Buffer {
  if (Buffer.byteLength(name) > 100) throw new Error(`${name} is too long a name for the archive.`);
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, length: number): string => `${value.toString(8).padStart(length - 1, '0')}\0`;
  block.write(name, 0);
  block.write(octal(0o644, 8), 100);
  block.write(octal(0, 8), 108);
  block.write(octal(0, 8), 116);
  block.write(octal(size, 12), 124);
  block.write(octal(0, 12), 136);
  // The checksum is taken with blanks in its own place.
  block.write('        ', 148);
  block.write('0', 156);
  block.write('ustar\x0000', 257);
  block.write(
    `${octal(
      block.reduce((sum, byte) => sum + byte, 0),
      7,
    )} `,
    148,
  );
  return block;
}

/** The world that an exported document holds. @param file absolute path @throws FixtureFault */
export function readExportedWorld(sources: FixtureSources, file: string, catalog: Catalog): World {
  const start = { file, line: 1, column: 1 };
  const [document] = sources.read(file, start, MAX_EXPORT_BYTES);
  if (document === undefined) throw new FixtureFault(start, 'The file is empty.');
  return locating(document, [], () => readWorldDocument(document.value, catalog));
}

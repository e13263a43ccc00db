import { gunzipSync } from 'node:zlib';
import { Parser, type ReadEntry } from 'tar';
import { BundleRefused } from './bundle-refused.ts';

/** Of an archive, and of what it unpacks to. */
export const MAX_ARCHIVE_BYTES = 20 * 1024 * 1024;
const MAX_FILES = 1000;
const MAX_NAME = 255;

/** By name, relative to the root of the bundle: `policy.wasm`. Sorted as they came. */
export type ArchiveFiles = ReadonlyMap<string, Buffer>;

/**
 * The files of a gzipped tar archive, in memory: nothing is written under a name that it states.
 * @throws BundleRefused `archive` for anything but plain files and folders, names that lead elsewhere, or too much
 */
export function readArchive(archive: Uint8Array): ArchiveFiles {
  const files = new Map<string, Buffer>();
  let isWhole = false;
  const add = (entry: ReadEntry): void => {
    if (entry.type === 'Directory') {
      entry.resume();
      return;
    }
    if (entry.type !== 'File' && entry.type !== 'OldFile') {
      throw refused(`It holds ${printable(entry.path)}, which is not a plain file.`);
    }
    const name = nameIn(entry.path);
    if (files.has(name)) throw refused(`It holds ${printable(name)} twice.`);
    if (files.size === MAX_FILES) throw refused(`It holds more than ${MAX_FILES} files.`);
    const chunks: Buffer[] = [];
    files.set(name, Buffer.alloc(0));
    entry.on('data', (chunk) => chunks.push(chunk));
    entry.on('end', () => files.set(name, Buffer.concat(chunks)));
  };
  const parser = new Parser({ strict: true, onReadEntry: add });
  parser.on('ignoredEntry', (entry) => {
    throw refused(`It holds ${printable(entry.path)}, which is not a plain file.`);
  });
  parser.on('eof', () => {
    isWhole = true;
  });
  try {
    parser.end(unpacked(archive));
  } catch (error) {
    if (error instanceof BundleRefused) throw error;
    throw refused(`The tar archive is damaged: ${error instanceof Error ? error.message : String(error)}.`, error);
  }
  if (!isWhole) throw refused('The tar archive is truncated.');
  return files;
}

function unpacked(archive: Uint8Array): Buffer {
  if (archive.byteLength > MAX_ARCHIVE_BYTES) throw refused(`It is larger than ${MAX_ARCHIVE_BYTES} bytes.`);
  let tar: Buffer;
  try {
    tar = gunzipSync(archive, { maxOutputLength: MAX_ARCHIVE_BYTES });
  } catch (error) {
    if (error instanceof RangeError) throw refused(`It unpacks to more than ${MAX_ARCHIVE_BYTES} bytes.`, error);
    throw refused('Not a gzip archive, or truncated.', error);
  }
  // The parser would unpack what is packed twice, and nobody would count.
  if (tar.toString('latin1', 257, 262) !== 'ustar') throw refused('Not a gzipped tar archive.');
  return tar;
}

/** OPA writes a slash before each name, `tar` a dot and a slash. */
function nameIn(path: string): string {
  const name = path.replace(/^(?:\.?\/)/, '');
  const leadsElsewhere = name.split('/').some((part) => part === '' || part === '.' || part === '..');
  if (leadsElsewhere || name.length > MAX_NAME || !/^[\x20-\x5b\x5d-\x7e]+$/.test(name)) {
    throw refused(`It holds a file with a name that is not allowed: ${printable(path)}.`);
  }
  return name;
}

const printable = (text: string): string => JSON.stringify(text.slice(0, MAX_NAME));

const refused = (message: string, cause?: unknown): BundleRefused => new BundleRefused('archive', message, cause);

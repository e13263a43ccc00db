import { crc32, inflateRawSync } from 'node:zlib';
import { Parser, type ReadEntry } from 'tar';
import { BundleRefused } from './bundle-refused.ts';

/** Of an archive, and of what it unpacks to. */
export const MAX_ARCHIVE_BYTES = 20 * 1024 * 1024;
const MAX_FILES = 1000;
const MAX_NAME = 255;
/** Bytes of a block of a tar archive. */
const BLOCK = 512;

/** By name, relative to the root of the bundle: `policy.wasm`. Sorted as they came. */
export type ArchiveFiles = ReadonlyMap<string, Buffer>;

/**
 * The files of a gzipped tar archive, in memory: nothing is written under a name that it states.
 * @throws BundleRefused `archive` for anything but plain files and folders, names that lead elsewhere, bytes behind the end, or too much
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
  const tar = unpacked(archive);
  let read = 0;
  try {
    for (; read < tar.length && !isWhole; read += BLOCK) parser.write(tar.subarray(read, read + BLOCK));
    parser.end();
  } catch (error) {
    if (error instanceof BundleRefused) throw error;
    throw refused(`The tar archive is damaged: ${error instanceof Error ? error.message : String(error)}.`, error);
  }
  if (!isWhole) throw refused('The tar archive is truncated.');
  // `tar` fills its last record with zeros.
  if (tar.subarray(read).some((byte) => byte !== 0)) throw refused('Bytes follow the end of its tar archive.');
  return files;
}

function unpacked(archive: Uint8Array): Buffer {
  if (archive.byteLength > MAX_ARCHIVE_BYTES) throw refused(`It is larger than ${MAX_ARCHIVE_BYTES} bytes.`);
  const tar = onlyMember(Buffer.from(archive.buffer, archive.byteOffset, archive.byteLength));
  // The parser would unpack what is packed twice, and nobody would count.
  if (tar.toString('latin1', 257, 262) !== 'ustar') throw refused('Not a gzipped tar archive.');
  return tar;
}

const GZIP = { magic: 0x1f8b, deflate: 8, head: 10, trailer: 8 } as const;
/** Bits of a gzip header's flags. */
const FLAG = { headerCrc: 2, extra: 4, name: 8, comment: 16, reserved: 0xe0 } as const;

/**
 * The content of a gzip file of one member. Node's own reader would unpack further members as well and ignore other bytes behind them:
 * one archive could then be handed out in many forms.
 */
function onlyMember(gzip: Buffer): Buffer {
  const start = endOfGzipHeader(gzip);
  let inflated: unknown;
  try {
    inflated = inflateRawSync(gzip.subarray(start), { maxOutputLength: MAX_ARCHIVE_BYTES, info: true });
  } catch (error) {
    if (error instanceof RangeError) throw refused(`It unpacks to more than ${MAX_ARCHIVE_BYTES} bytes.`, error);
    throw notGzip(error);
  }
  if (!isInflated(inflated)) throw new Error('Node did not tell how many bytes it has inflated.');
  const { buffer, engine } = inflated;
  const trailer = start + engine.bytesWritten;
  if (gzip.length < trailer + GZIP.trailer) throw notGzip();
  const isIntact = gzip.readUInt32LE(trailer) === crc32(buffer) && gzip.readUInt32LE(trailer + 4) === buffer.length;
  if (!isIntact) throw refused('The gzip archive is damaged: its checksum or length is wrong.');
  if (gzip.length > trailer + GZIP.trailer) throw refused('Bytes follow the end of its gzip archive.');
  return buffer;
}

/** Where the compressed content begins. */
function endOfGzipHeader(gzip: Buffer): number {
  if (gzip.length < GZIP.head || gzip.readUInt16BE(0) !== GZIP.magic || gzip[2] !== GZIP.deflate) throw notGzip();
  const flags = gzip.readUInt8(3);
  if ((flags & FLAG.reserved) !== 0) throw notGzip();
  let end: number = GZIP.head;
  if ((flags & FLAG.extra) !== 0) end += 2 + (end + 2 <= gzip.length ? gzip.readUInt16LE(end) : 0);
  for (const text of [FLAG.name, FLAG.comment]) {
    if ((flags & text) === 0) continue;
    const zero = gzip.indexOf(0, end);
    if (zero === -1) throw notGzip();
    end = zero + 1;
  }
  return (flags & FLAG.headerCrc) === 0 ? end : end + 2;
}

interface Inflated {
  readonly buffer: Buffer;
  readonly engine: { readonly bytesWritten: number };
}

/** Node's types do not know the option `info`. */
const isInflated = (value: unknown): value is Inflated =>
  typeof value === 'object' && value !== null && 'buffer' in value && 'engine' in value;

const notGzip = (cause?: unknown): BundleRefused => refused('Not a gzip archive, or truncated.', cause);

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

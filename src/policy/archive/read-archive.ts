import { createRequire } from 'node:module';
import { crc32, inflateRawSync } from 'node:zlib';
import type { ReadEntry } from 'tar';
import { plainText } from '../../lib/text.ts';
import { bundleDigest, type PolicyBundle } from '../bundle.ts';

/** `tar` is loaded with the first archive: the policy of the installation needs none. */
const require = createRequire(import.meta.url);

/** Most bytes of an archive, and of its unpacked content. */
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
  const { Parser }: typeof import('tar') = require('tar');
  const files = new Map<string, Buffer>();
  let isWhole = false;
  const add = (entry: ReadEntry): void => {
    if (entry.type === 'Directory') {
      entry.resume();
      return;
    }
    if (entry.type !== 'File' && entry.type !== 'OldFile') {
      throw archiveRefused(`It holds ${printable(entry.path)}, which is not a plain file.`);
    }
    const name = nameIn(entry.path);
    if (files.has(name)) throw archiveRefused(`It holds ${printable(name)} twice.`);
    if (files.size === MAX_FILES) throw archiveRefused(`It holds more than ${MAX_FILES} files.`);
    const chunks: Buffer[] = [];
    files.set(name, Buffer.alloc(0));
    entry.on('data', (chunk) => chunks.push(chunk));
    entry.on('end', () => files.set(name, Buffer.concat(chunks)));
  };
  const parser = new Parser({ strict: true, onReadEntry: add });
  parser.on('ignoredEntry', (entry) => {
    throw archiveRefused(`It holds ${printable(entry.path)}, which is not a plain file.`);
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
    throw archiveRefused(
      `The tar archive is damaged: ${error instanceof Error ? error.message : String(error)}.`,
      error,
    );
  }
  if (!isWhole) throw archiveRefused('The tar archive is truncated.');
  // `tar` fills its last record with zeros.
  if (tar.subarray(read).some((byte) => byte !== 0)) throw archiveRefused('Bytes follow the end of its tar archive.');
  return files;
}

function unpacked(archive: Uint8Array): Buffer {
  if (archive.byteLength > MAX_ARCHIVE_BYTES) throw archiveRefused(`It is larger than ${MAX_ARCHIVE_BYTES} bytes.`);
  const tar = onlyMember(Buffer.from(archive.buffer, archive.byteOffset, archive.byteLength));
  // The parser would unpack what is packed twice, and nobody would count.
  if (tar.toString('latin1', 257, 262) !== 'ustar') throw archiveRefused('Not a gzipped tar archive.');
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
    if (error instanceof RangeError) throw archiveRefused(`It unpacks to more than ${MAX_ARCHIVE_BYTES} bytes.`, error);
    throw notGzip(error);
  }
  if (!isInflated(inflated)) throw new Error('Node did not tell how many bytes it has inflated.');
  const { buffer, engine } = inflated;
  const trailer = start + engine.bytesWritten;
  if (gzip.length < trailer + GZIP.trailer) throw notGzip();
  const isIntact = gzip.readUInt32LE(trailer) === crc32(buffer) && gzip.readUInt32LE(trailer + 4) === buffer.length;
  if (!isIntact) throw archiveRefused('The gzip archive is damaged: its checksum or length is wrong.');
  if (gzip.length > trailer + GZIP.trailer) throw archiveRefused('Bytes follow the end of its gzip archive.');
  return buffer;
}

/** Start of the compressed content. */
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

const notGzip = (cause?: unknown): BundleRefused => archiveRefused('Not a gzip archive, or truncated.', cause);

/** OPA writes a slash before each name, `tar` a dot and a slash. */
function nameIn(path: string): string {
  const name = path.replace(/^(?:\.?\/)/, '');
  const leadsElsewhere = name.split('/').some((part) => part === '' || part === '.' || part === '..');
  if (leadsElsewhere || name.length > MAX_NAME || !/^[\x20-\x5b\x5d-\x7e]+$/.test(name)) {
    throw archiveRefused(`It holds a file with a name that is not allowed: ${printable(path)}.`);
  }
  return name;
}

const printable = (text: string): string => JSON.stringify(text.slice(0, MAX_NAME));

const archiveRefused = (message: string, cause?: unknown): BundleRefused =>
  new BundleRefused('archive', message, cause);

const WASM = 'policy.wasm';
const MANIFEST = '.manifest';
const DATA = 'data.json';
/** It is loaded next to the rules of each call's subjects, where it takes some ten times as much memory. */
const MAX_DATA_BYTES = 64 * 1024;
/** Names under which the gateway keeps its own data. */
export const RESERVED_DATA: readonly string[] = ['subjects', 'gateway'];
const MAX_REVISION = 256;

/** The policy in a bundle as `opa build -b -t wasm` writes it. @throws BundleRefused `policy` */
export function archivedBundle(files: ArchiveFiles): PolicyBundle {
  const wasm = files.get(WASM);
  if (wasm === undefined) throw policyRefused(`It has no ${WASM}: build it with opa build -t wasm.`);
  const nested = [...files.keys()].find((name) => /(?:^|\/)data\.(?:json|ya?ml)$/.test(name) && name !== DATA);
  if (nested !== undefined)
    throw policyRefused(`It holds ${nested}, but data is read from ${DATA} only: build it with opa build.`);
  const data = ownData(files.get(DATA));
  return { wasm, data, digest: bundleDigest({ wasm, data }), ...manifestIn(files.get(MANIFEST)) };
}

function ownData(content: Buffer | undefined): string | undefined {
  if (content === undefined) return undefined;
  if (content.byteLength > MAX_DATA_BYTES) throw policyRefused(`${DATA} is larger than ${MAX_DATA_BYTES} bytes.`);
  const data = objectIn(DATA, content);
  const taken = RESERVED_DATA.find((name) => Object.hasOwn(data, name));
  if (taken !== undefined) throw policyRefused(`${DATA} holds "${taken}", which is reserved for the gateway.`);
  return Object.keys(data).length === 0 ? undefined : content.toString('utf8').trim();
}

function manifestIn(content: Buffer | undefined): Pick<PolicyBundle, 'revision' | 'takesFacts'> {
  const { revision = '', roots } = content === undefined ? {} : objectIn(MANIFEST, content);
  if (typeof revision !== 'string' || revision.length > MAX_REVISION) {
    throw policyRefused(`The revision in ${MANIFEST} must be text of at most ${MAX_REVISION} characters.`);
  }
  return {
    revision: revision === '' ? undefined : plainText(revision),
    takesFacts: Array.isArray(roots) && roots.includes('custom'),
  };
}

function objectIn(name: string, content: Buffer): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(content.toString('utf8'));
  } catch (error) {
    throw policyRefused(`${name} is not JSON.`, error);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw policyRefused(`${name} is not a JSON object.`);
  return { ...value };
}

const policyRefused = (message: string, cause?: unknown): BundleRefused => new BundleRefused('policy', message, cause);

/** Why a policy bundle was refused, in a word. The sentence that goes with it says more. */
export const REFUSAL_CODES = [
  /** Its source did not hand one out. */
  'unreachable',
  /** It is not an archive, is truncated, is too large, or holds more than plain files. */
  'archive',
  'signature',
  /** It is older than one that was in force: its number is lower, or it was in force before. */
  'rollback',
  /** Its manifest, module or data are not those of a policy that this gateway can run. */
  'policy',
  'self_test',
  'fixtures',
  'time_limit',
] as const;
export type RefusalCode = (typeof REFUSAL_CODES)[number];

export const isRefusalCode = (value: unknown): value is RefusalCode => REFUSAL_CODES.some((code) => code === value);

/** A bundle may not serve. The message is for the operator, in one line. */
export class BundleRefused extends Error {
  override readonly name = 'BundleRefused';
  readonly code: RefusalCode;

  constructor(code: RefusalCode, message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

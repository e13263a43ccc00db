import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  readSync,
  renameSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';

export interface RotatedFileOptions {
  readonly path: string;
  /** At this size or beyond, the file is put aside and another one is begun. */
  readonly maxBytes: number;
  /** Rotated files that are kept, at least one: `<path>.1` is the latest. */
  readonly kept: number;
}

/** Mode of the files: their owner writes them, their group may read them. */
export const ROTATED_FILE_MODE = 0o640;
const NEWLINE = 0x0a;
/** Bytes of the end of a file that are read at once. */
const CHUNK = 65_536;

/**
 * A file of lines that only grows, with the ones before it. It holds whole lines only: what a crash left of one is cut off when it is
 * opened, and what could not be written whole is taken back. A file that someone moved away is begun again.
 */
export class RotatedFile {
  readonly #options: RotatedFileOptions;
  #descriptor: number | undefined;

  constructor(options: RotatedFileOptions) {
    this.#options = options;
  }

  /** Bytes of whole lines. @throws Error of the system */
  get size(): number {
    return fstatSync(this.#opened()).size;
  }

  /** Text after the first bytes, or all of it where it is not that long. @throws Error of the system */
  readFrom(start: number): string {
    const { size } = this;
    const bytes = Buffer.alloc(size < start ? size : size - start);
    let read = 0;
    while (read < bytes.length) {
      const more = readSync(this.#opened(), bytes, read, bytes.length - read, size - bytes.length + read);
      if (more === 0) break;
      read += more;
    }
    return bytes.toString('utf8', 0, read);
  }

  /** Adds lines, all or none of them. @throws Error of the system */
  append(lines: string): void {
    const bytes = Buffer.from(lines);
    const { size } = this;
    const descriptor = this.#opened();
    try {
      for (let written = 0; written < bytes.length; ) written += writeSync(descriptor, bytes, written);
    } catch (error) {
      ftruncateSync(descriptor, size);
      throw error;
    }
  }

  /** Puts the file aside if it is large enough. @returns whether it was @throws Error of the system */
  rotate(): boolean {
    const { path, maxBytes, kept } = this.#options;
    if (this.size < maxBytes) return false;
    this.close();
    for (let age = kept; age > 0; age -= 1) moveIfThere(age === 1 ? path : `${path}.${age - 1}`, `${path}.${age}`);
    return true;
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  #opened(): number {
    if (this.#descriptor !== undefined && !isAt(this.#options.path, this.#descriptor)) this.close();
    this.#descriptor ??= openWhole(this.#options.path);
    return this.#descriptor;
  }
}

/** Whether the open file is still the one of this name. */
function isAt(path: string, descriptor: number): boolean {
  const named = statSync(path, { throwIfNoEntry: false });
  const opened = fstatSync(descriptor);
  return named?.ino === opened.ino && named.dev === opened.dev;
}

/** Opens a file to add to it, and cuts off a line without an end. */
function openWhole(path: string): number {
  const descriptor = openSync(path, constants.O_RDWR | constants.O_APPEND | constants.O_CREAT, ROTATED_FILE_MODE);
  const { size } = fstatSync(descriptor);
  const end = endOfLines(descriptor, size);
  if (end < size) ftruncateSync(descriptor, end);
  return descriptor;
}

/** End of the last whole line in the first bytes. */
function endOfLines(descriptor: number, size: number): number {
  const chunk = Buffer.alloc(CHUNK);
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - CHUNK);
    const read = readSync(descriptor, chunk, 0, end - start, start);
    const newline = chunk.subarray(0, read).lastIndexOf(NEWLINE);
    if (newline >= 0) return start + newline + 1;
    end = start;
  }
  return 0;
}

function moveIfThere(from: string, to: string): void {
  if (statSync(from, { throwIfNoEntry: false }) !== undefined) renameSync(from, to);
}

/** A link that leads nowhere is a disk that is not mounted, or a file that was lost: nothing may be begun in its place. @throws Error */
export function assertNoDanglingLink(path: string): void {
  if (existsSync(path) || lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return;
  throw new Error(
    `${path} is a link to ${readlinkSync(path)}, which is not there: put back what it leads to, or remove the link.`,
  );
}

/**
 * Makes a folder and those above it that are missing. One by one: Node's own `recursive` never returns where the system lets nobody
 * make one, as under /proc.
 * @param mode of those that are made, less the umask; default: everyone's
 */
export function makeFolders(folder: string, mode?: number): void {
  if (existsSync(folder)) return;
  assertNoDanglingLink(folder);
  const parent = dirname(folder);
  // A drive that is not there is its own parent.
  if (parent !== folder) makeFolders(parent, mode);
  try {
    mkdirSync(folder, mode === undefined ? {} : { mode });
  } catch (error) {
    if (!existsSync(folder)) throw error; // Someone else may have made it meanwhile.
  }
}

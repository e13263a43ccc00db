import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { entryOf } from '../../lib/text.ts';
import { UsageError } from './usage-error.ts';

const FAULTS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  ENOTDIR: 'a part of this path is not a folder',
  EISDIR: 'this is a folder',
  EEXIST: 'this exists already',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'this file system is read-only',
  ENOSPC: 'no space is left on the device',
};

/** A failure of the file system in a sentence; a file that the command line names is wrong usage. Others are returned as they are. */
export function fileFault(error: unknown, args: readonly string[]): unknown {
  if (!(error instanceof Error) || !('code' in error) || !('path' in error)) return error;
  const { code, path: file } = error;
  if (typeof code !== 'string' || typeof file !== 'string') return error;
  const fault = entryOf(FAULTS, code);
  if (fault === undefined) return error;
  const named = args.find((argument) => isSame(argument.replace(/^--[a-z-]+=/, ''), file));
  return named === undefined ? new Error(`${file}: ${fault}.`, { cause: error }) : new UsageError(`${file}: ${fault}.`);
}

const isSame = (argument: string, file: string): boolean => path.resolve(argument) === path.resolve(file);

/** The JSON value in a file. @throws UsageError for what is not JSON; what the file system says otherwise */
export function readJsonFile(file: string): unknown {
  const text = readFileSync(file, 'utf8');
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`${file} is not valid JSON.`);
  }
}

/** Before the work whose result it is to hold. @throws UsageError for a file that cannot be written */
export function checkWritable(file: string): void {
  const folder = path.dirname(path.resolve(file));
  if (!existsSync(folder)) throw new UsageError(`${file} cannot be written: there is no folder ${folder}.`);
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory()) throw new UsageError(`${file} is a folder.`);
  try {
    accessSync(existsSync(file) ? file : folder, constants.W_OK);
  } catch {
    throw new UsageError(`${file} cannot be written: permission denied.`);
  }
}

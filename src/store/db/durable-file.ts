import { closeSync, fsyncSync, openSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Makes what was done to the names in a folder survive the loss of power, where the system can. */
export function syncFolder(folder: string): void {
  if (process.platform === 'win32') return; // It opens no folders.
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Writes a file that its owner alone reads: next to its place, then moved there, so that a crash leaves the old one or the
 * whole new one.
 */
export function writeDurably(path: string, content: string | Uint8Array): void {
  const file = openSync(`${path}.new`, 'w', 0o600);
  try {
    writeFileSync(file, content);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(`${path}.new`, path);
  syncFolder(dirname(path));
}

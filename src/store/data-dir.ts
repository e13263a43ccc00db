import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

/** The one SQLite file of a data directory. */
export const databasePath = (dataDir: string): string => join(dataDir, 'portcullis.sqlite');

/** Makes the data directory, readable by its owner alone: it holds the server's secrets. */
export function createDataDir(dataDir: string): void {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
}

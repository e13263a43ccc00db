import { accessSync, constants, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from '../domain/config-value.ts';

/** The one SQLite file of a data directory. */
export const databasePath = (dataDir: string): string => join(dataDir, 'portcullis.sqlite');

/** Makes the data directory, readable by its owner alone: it holds the server's secrets. @throws ConfigError */
export function createDataDir(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    const fault = error instanceof Error ? error.message : String(error);
    throw new ConfigError(`DATA_DIR: cannot write ${dataDir}: ${fault}.`);
  }
}

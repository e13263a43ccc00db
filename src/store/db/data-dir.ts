import { accessSync, constants, existsSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from '../../config/config-value.ts';
import { makeFolders } from '../../folders.ts';

/** The one SQLite file of a data directory. */
export const databasePath = (dataDir: string): string => join(dataDir, 'portcullis.sqlite');

/** Makes the data directory, readable by its owner alone: it holds the server's secrets. @throws ConfigError */
export function createDataDir(dataDir: string): void {
  try {
    makeFolders(dataDir, 0o700);
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    const fault = error instanceof Error ? error.message : String(error);
    throw new ConfigError(`DATA_DIR: cannot write ${dataDir}: ${fault.replace(/\.$/, '')}.`);
  }
}

/** Whether the data directory has a database already: then the secrets that it was made with must be there too. */
export const hasDatabase = (dataDir: string): boolean => existsSync(databasePath(dataDir));

import { accessSync, constants } from 'node:fs';
import path from 'node:path';
import { type Browser, chromium } from 'playwright-core';

export const CHROMIUM_NAMES = ['chromium', 'chromium-browser', 'google-chrome'] as const;

const isExecutable = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

/** Chromium's path: `CHROMIUM_PATH`, or the first of its names on the PATH. */
export function findChromium(): string | undefined {
  const { CHROMIUM_PATH = '', PATH = '' } = process.env;
  const folders = PATH.split(path.delimiter);
  const named = CHROMIUM_NAMES.flatMap((name) => folders.map((folder) => path.join(folder, name)));
  return (CHROMIUM_PATH === '' ? named : [CHROMIUM_PATH]).find(isExecutable);
}

/** Starts Chromium, which reaches nothing but this machine. */
export function launchChromium(): Promise<Browser> {
  const executablePath = findChromium();
  if (executablePath === undefined) throw new Error('There is no Chromium: run `npm run test:browser`, which says so.');
  return chromium.launch({
    executablePath,
    args: ['--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1'],
  });
}

import { statSync, watch } from 'node:fs';
import path from 'node:path';

/** Editors write a file in several steps. */
const SETTLE_MS = 100;

/**
 * Resolves when something changes in one of these folders, at any depth, or next to one of these files; or when it is aborted.
 * @param places absolute paths
 * @param areStale asked once the watch stands: whether something changed before
 */
export function changeIn(places: Iterable<string>, areStale: () => boolean, signal: AbortSignal): Promise<void> {
  const folders = new Set([...places].map(folderOf).filter((folder) => folder !== undefined));
  const done = new AbortController();
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = AbortSignal.any([signal, done.signal]);
  const settled = (): void => {
    setTimeout(resolve, SETTLE_MS);
  };
  for (const folder of folders) watch(folder, { recursive: true, signal: stop }, settled).on('error', settled);
  if (areStale()) settled();
  signal.addEventListener('abort', () => resolve(), { once: true });
  return promise.finally(() => done.abort());
}

/** The place itself if it is a folder, the folder of a file; undefined where there is neither. */
function folderOf(place: string): string | undefined {
  const found = statSync(place, { throwIfNoEntry: false });
  if (found?.isDirectory()) return place;
  const folder = path.dirname(place);
  return statSync(folder, { throwIfNoEntry: false })?.isDirectory() ? folder : undefined;
}

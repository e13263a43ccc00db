import { createRequire } from 'node:module';

export type { Metadata, Sharp } from 'sharp';

const PLATFORM = `${process.platform}-${process.arch}`;

/** Packages that hold sharp's native part for this platform: one of them is installed, with the other optional packages. */
const NATIVE_PARTS = [PLATFORM, PLATFORM.replace('linux', 'linuxmusl'), 'wasm32'];

/** Why sharp cannot work here, as a sentence without its end; undefined: its files are there. Loads nothing. */
export function sharpFault(): string | undefined {
  const isThere = NATIVE_PARTS.some((part) => {
    try {
      const { resolve } = createRequire(createRequire(import.meta.url).resolve('sharp'));
      return resolve(`@img/sharp-${part}/sharp.node`) !== '';
    } catch {
      return false;
    }
  });
  return isThere ? undefined : `sharp is not installed for ${PLATFORM}`;
}

/** sharp cannot work here. The message is a sentence without its end. */
export class SharpUnavailable extends Error {
  override readonly name = 'SharpUnavailable';
}

/**
 * Loads sharp with the first picture: gateways without pictures keep the memory. It takes one thread for each picture and keeps
 * nothing between pictures, because many callers share this process. @throws SharpUnavailable
 */
export async function loadSharp(): Promise<typeof import('sharp').default> {
  try {
    const { default: sharp } = await import('sharp');
    sharp.concurrency(1);
    sharp.cache(false);
    return sharp;
  } catch (cause) {
    throw new SharpUnavailable(sharpFault() ?? `sharp cannot be loaded on ${PLATFORM}`, { cause });
  }
}

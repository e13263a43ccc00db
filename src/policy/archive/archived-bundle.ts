import { hash } from 'node:crypto';
import { plainText } from '../../lib/text.ts';
import type { PolicyBundle } from '../bundle.ts';
import { BundleRefused } from './bundle-refused.ts';
import type { ArchiveFiles } from './read-archive.ts';

const WASM = 'policy.wasm';
const MANIFEST = '.manifest';
const DATA = 'data.json';
/** It is loaded next to the rules of each call's subjects, where it takes some ten times as much memory. */
const MAX_DATA_BYTES = 64 * 1024;
/** Where the gateway keeps its own. */
export const RESERVED_DATA: readonly string[] = ['subjects', 'gateway'];
const MAX_REVISION = 256;

/** The policy in a bundle as `opa build -b -t wasm` writes it. @throws BundleRefused `policy` */
export function archivedBundle(files: ArchiveFiles): PolicyBundle {
  const wasm = files.get(WASM);
  if (wasm === undefined) throw refused(`It has no ${WASM}: build it with opa build -t wasm.`);
  const nested = [...files.keys()].find((name) => /(?:^|\/)data\.(?:json|ya?ml)$/.test(name) && name !== DATA);
  if (nested !== undefined)
    throw refused(`It holds ${nested}, but data is read from ${DATA} only: build it with opa build.`);
  const data = ownData(files.get(DATA));
  const digest = hash('sha256', wasm);
  return {
    wasm,
    data,
    digest: data === undefined ? digest : hash('sha256', `${digest} ${data}`),
    ...manifestIn(files.get(MANIFEST)),
  };
}

function ownData(content: Buffer | undefined): string | undefined {
  if (content === undefined) return undefined;
  if (content.byteLength > MAX_DATA_BYTES) throw refused(`${DATA} is larger than ${MAX_DATA_BYTES} bytes.`);
  const data = objectIn(DATA, content);
  const taken = RESERVED_DATA.find((name) => Object.hasOwn(data, name));
  if (taken !== undefined) throw refused(`${DATA} holds "${taken}", which is reserved for the gateway.`);
  return Object.keys(data).length === 0 ? undefined : content.toString('utf8').trim();
}

function manifestIn(content: Buffer | undefined): Pick<PolicyBundle, 'revision' | 'takesFacts'> {
  const { revision = '', roots } = content === undefined ? {} : objectIn(MANIFEST, content);
  if (typeof revision !== 'string' || revision.length > MAX_REVISION) {
    throw refused(`The revision in ${MANIFEST} must be text of at most ${MAX_REVISION} characters.`);
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
    throw refused(`${name} is not JSON.`, error);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw refused(`${name} is not a JSON object.`);
  return { ...value };
}

const refused = (message: string, cause?: unknown): BundleRefused => new BundleRefused('policy', message, cause);

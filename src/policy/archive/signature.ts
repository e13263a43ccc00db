import { createPublicKey, hash, type KeyObject } from 'node:crypto';
import { compactVerify } from 'jose';
import type { SignedAs } from '../../generated/types.ts';
import { type ArchiveFiles, BundleRefused } from './read-archive.ts';

/** Keys and scope of the signature that a bundle must bear. */
export interface Trust {
  /** Public keys as PEM; a signature made with one of them is enough. Empty: bundles are unsigned. */
  readonly publicKeys: readonly string[];
  /** Which the signature must state; undefined: it must state none. */
  readonly scope: string | undefined;
}

export const SIGNATURES = '.signatures.json';

/** Signatures by public keys alone: with a shared secret, anyone who verifies could sign too. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];

/** Entry of a signature for one file. */
interface SignedFile {
  readonly name: string;
  readonly hash: string;
  readonly algorithm: HashName;
}

/**
 * OPA's own rules: one signature, by a key that we trust, and of exactly the files that are there, as they are.
 * @returns undefined for a bundle without a signature @throws BundleRefused `signature`
 */
export async function verifySignature(
  files: ArchiveFiles,
  { publicKeys, scope }: Trust,
): Promise<SignedAs | undefined> {
  const signatures = files.get(SIGNATURES);
  if (publicKeys.length === 0) {
    if (signatures === undefined) return undefined;
    throw refused('It is signed, and there is no public key to verify it with: set POLICY_BUNDLE_PUBLIC_KEY.');
  }
  if (signatures === undefined) throw refused('It is not signed.');
  const payload = await verifiedPayload(
    tokenIn(signatures),
    publicKeys.map((pem) => createPublicKey(pem)),
  );
  if (payload.scope !== scope) {
    throw refused(
      `Its signature states ${scopeText(payload.scope)}, but POLICY_BUNDLE_SCOPE asks for ${scopeText(scope)}.`,
    );
  }
  verifyFiles(files, payload);
  return { number: payload.number, content: contentOf(payload) };
}

/** @throws BundleRefused where the files are not exactly those that were signed */
function verifyFiles(files: ArchiveFiles, payload: Payload): void {
  const signed = new Map(payload.files.map((file) => [file.name, file]));
  for (const [name, content] of files) {
    if (name === SIGNATURES) continue;
    const file = signed.get(name);
    if (file === undefined) throw refused(`Its signature does not cover ${name}.`);
    if (file.hash.toLowerCase() !== hashOf(name, content, file))
      throw refused(`${name} differs from the file that was signed.`);
    signed.delete(name);
  }
  const [missing] = signed.keys();
  if (missing !== undefined) throw refused(`It lacks ${JSON.stringify(missing)}, which was signed.`);
}

const contentOf = ({ files }: Payload): string =>
  hash('sha256', JSON.stringify(files.map(({ name, hash: of }) => [name, of.toLowerCase()]).sort()));

function hashOf(name: string, content: Buffer, { algorithm }: SignedFile): string {
  try {
    return fileHash(name, content, algorithm);
  } catch (error) {
    throw refused(`${name} is not JSON.`, error);
  }
}

function tokenIn(signatures: Buffer): string {
  const content = parsed(signatures.toString('utf8'));
  const tokens = isObject(content) ? content.signatures : undefined;
  if (!Array.isArray(tokens) || tokens.length !== 1) throw refused(`${SIGNATURES} must hold exactly one signature.`);
  const [token]: unknown[] = tokens;
  if (typeof token !== 'string') throw refused(`${SIGNATURES} must hold a JSON web token.`);
  return token;
}

interface Payload {
  readonly files: readonly SignedFile[];
  readonly scope: string | undefined;
  /** 0: none is stated. */
  readonly number: number;
}

/** Returns the signed content, whichever of the keys signed it. */
async function verifiedPayload(token: string, keys: readonly KeyObject[]): Promise<Payload> {
  let fault: unknown;
  for (const key of keys) {
    try {
      const { payload } = await compactVerify(token, key, { algorithms: ALGORITHMS });
      return payloadOf(parsed(Buffer.from(payload).toString('utf8')));
    } catch (error) {
      if (error instanceof BundleRefused) throw error;
      fault = error;
    }
  }
  throw refused('No key in POLICY_BUNDLE_PUBLIC_KEY made its signature.', fault);
}

function payloadOf(content: unknown): Payload {
  const { files, scope, number = 0 }: Readonly<Record<string, unknown>> = isObject(content) ? content : {};
  if (!Array.isArray(files) || !files.every(isSignedFile)) {
    throw refused('Its signature lists no files with their hashes, by SHA-256, SHA-384 or SHA-512.');
  }
  if (scope !== undefined && typeof scope !== 'string') throw refused('The scope of its signature is not text.');
  const isStated = isObject(content) && Object.hasOwn(content, 'number');
  if (typeof number !== 'number' || !Number.isSafeInteger(number) || number < (isStated ? 1 : 0)) {
    throw refused(`The number of its signature is not a whole number from 1 to ${Number.MAX_SAFE_INTEGER}.`);
  }
  return { files, scope: scope === '' ? undefined : scope, number };
}

function isSignedFile(value: unknown): value is SignedFile {
  if (!isObject(value)) return false;
  const { name, hash, algorithm } = value;
  return typeof name === 'string' && typeof hash === 'string' && isHashName(algorithm);
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw refused('Its signature is not JSON.', error);
  }
}

const scopeText = (scope: string | undefined): string => (scope === undefined ? 'no scope' : `the scope "${scope}"`);

const refused = (message: string, cause?: unknown): BundleRefused => new BundleRefused('signature', message, cause);

const HASHES = { 'SHA-256': 'sha256', 'SHA-384': 'sha384', 'SHA-512': 'sha512' } as const;
type HashName = keyof typeof HASHES;

const isHashName = (name: unknown): name is HashName => typeof name === 'string' && Object.hasOwn(HASHES, name);

/** These OPA hashes as what they mean, not as they are written: sorted and without blanks. */
const STRUCTURED = /(?:^|\/)(?:data\.json|\.manifest)$/;

/** The hash, hex, of a file of a bundle, as OPA's signatures have it. @throws SyntaxError for a document that is not JSON */
const fileHash = (name: string, content: Buffer, algorithm: HashName): string =>
  hash(HASHES[algorithm], STRUCTURED.test(name) ? canonicalDocument(content.toString('utf8')) : content);

/** JSON text as Go writes it, keys sorted; numbers stay as they were written. */
function canonicalDocument(text: string): string {
  return written(JSON.parse(text, sourced));
}

/** A number as its source has it: `1.0` is not `1` there. */
class Source {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

const sourced = (_key: string, value: unknown, context?: { readonly source?: string }): unknown =>
  typeof value === 'number' && context?.source !== undefined ? new Source(context.source) : value;

function written(value: unknown): string {
  if (value instanceof Source) return value.text;
  if (Array.isArray(value)) return `[${value.map(written).join()}]`;
  if (typeof value !== 'object' || value === null) return primitive(value);
  const members = Object.entries(value).sort(([one], [other]) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
  return `{${members.map(([name, member]) => `${primitive(name)}:${written(member)}`).join()}}`;
}

/** Go escapes two more characters, in case the text stands in a script. */
const primitive = (value: unknown): string =>
  JSON.stringify(value).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');

import { createPrivateKey, type KeyObject } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { formatTime, systemClock } from '../../domain/time.ts';
import { entryOf } from '../../lib/text.ts';
import { buildBundle, type Signing, signBundle } from '../../workbench/bundles/build-bundle.ts';
import { tryBundle } from '../../workbench/bundles/try-bundle.ts';
import { tarGz } from '../../workbench/export/export-archive.ts';
import { checkWritable } from '../terminal/arguments.ts';
import { print, printJson, warn } from '../terminal/output.ts';
import { UsageError } from '../terminal/usage-faults.ts';
import { type BundleOptions, warnIfClosed } from './bundle-work.ts';

export interface BuildCommandOptions extends BundleOptions {
  readonly output: string;
  readonly revision?: string;
  readonly signingKey?: string;
  readonly signingAlg?: string;
  readonly number?: number;
}

/** `portcullis policy build`: what would be refused is not written. @throws Error with what `opa` said, BundleRefused, UsageError */
export async function buildAndTry(folder: string, options: BuildCommandOptions): Promise<void> {
  const { output, json } = options;
  const revision = options.revision ?? formatTime(systemClock.now());
  checkWritable(output);
  const signing = signingOf(options);
  const { files, warnings } = buildBundle(folder, revision);
  for (const warning of warnings) warn(`warning: ${warning}`);
  const trust = { publicKeys: [], scope: undefined };
  const bundle = await tryBundle({ archive: tarGz(files), trust });
  const { digest } = bundle;
  warnIfClosed(bundle);
  writeFileSync(output, tarGz(signing === undefined ? files : signBundle(files, signing)));
  const number = signing?.number;
  if (json)
    printJson({ output, digest, revision, signed: signing !== undefined, ...(number === undefined ? {} : { number }) });
  else print(`Wrote ${output}: ${revision} (policy ${digest.slice(0, 12)})${signedText(number)}.`);
}

const signedText = (number: number | undefined): string => (number === undefined ? '' : `, signed as number ${number}`);

const RSA = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];
const CURVES: Readonly<Record<string, string>> = { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' };

/** With which key and how it is signed; undefined: not at all. @throws UsageError for a key that cannot sign, or not in that way */
function signingOf({
  signingKey,
  signingAlg: algorithm = 'RS256',
  number = Math.floor(systemClock.now() / 1000),
}: BuildCommandOptions): Signing | undefined {
  if (signingKey === undefined) return undefined;
  const suiting = algorithmsOf(privateKeyIn(signingKey));
  const [first] = suiting;
  if (first === undefined) {
    throw new UsageError(`${signingKey}: its key can sign no bundle: RSA, P-256, P-384, P-521 or Ed25519 is needed.`);
  }
  if (suiting.includes(algorithm)) return { key: path.resolve(signingKey), algorithm, number };
  throw new UsageError(`${signingKey}: its key cannot sign with ${algorithm}: pass --signing-alg ${first}.`);
}

function privateKeyIn(file: string): KeyObject {
  const pem = readFileSync(file);
  try {
    return createPrivateKey(pem);
  } catch {
    throw new UsageError(`${file} is not a private key in PEM form, without a passphrase.`);
  }
}

function algorithmsOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): readonly string[] {
  if (asymmetricKeyType === 'rsa') return RSA;
  if (asymmetricKeyType === 'ed25519') return ['EdDSA'];
  const ofCurve = entryOf(CURVES, asymmetricKeyDetails?.namedCurve ?? '');
  return ofCurve === undefined ? [] : [ofCurve];
}

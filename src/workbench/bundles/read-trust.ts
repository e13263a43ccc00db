import { createPublicKey } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import type { BundleTrustConfig } from '../../config/config.ts';
import { ConfigError } from '../../config/variables.ts';
import type { Trust } from '../../policy/archive/signature.ts';

/** Whose signatures the settings ask for. @throws ConfigError */
export const readTrust = ({ publicKeyFile, scope }: BundleTrustConfig): Trust => ({
  publicKeys: readPublicKeys(publicKeyFile),
  scope,
});

/** The keys of a PEM file, one after another. @throws ConfigError */
function readPublicKeys(file: string | undefined): readonly string[] {
  if (file === undefined) return [];
  const fault = (what: string) => new ConfigError(`POLICY_BUNDLE_PUBLIC_KEY: ${file} ${what}.`);
  if (!existsSync(file)) throw new ConfigError(`POLICY_BUNDLE_PUBLIC_KEY: there is no file ${file}.`);
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw fault(`cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (text.includes('PRIVATE KEY')) throw fault('holds a private key: it must hold public ones alone');
  const keys = text.match(/-----BEGIN [A-Z ]+-----[^-]+-----END [A-Z ]+-----/g) ?? [];
  for (const key of keys) {
    try {
      createPublicKey(key);
    } catch {
      throw fault('holds a key that cannot be read');
    }
  }
  if (keys.length === 0) throw fault('holds no public key in PEM form');
  return keys;
}

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/**
 * Paths, relative to the policy folder and sorted, of everything that the compiled policy depends on: Rego without tests,
 * the manifest with the roots, and the builtins allowed.
 */
export function policySources(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .map((file) => file.split(path.sep).join('/'))
    .filter((file) => !file.startsWith('bundle/') && !file.endsWith('_test.rego'))
    .filter((file) => file.endsWith('.rego') || file === '.manifest' || file === 'capabilities.json')
    .sort();
}

/** SHA-256, hex, of the sources' paths and contents, each preceded by its length so that no two sets read alike. */
export function sourceDigest(directory: string): string {
  const digest = createHash('sha256');
  for (const file of policySources(directory)) {
    const content = readFileSync(path.join(directory, file));
    digest.update(`${Buffer.byteLength(file)} ${file} ${content.byteLength} `).update(content);
  }
  return digest.digest('hex');
}

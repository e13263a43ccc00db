import { readFileSync } from 'node:fs';

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

/** The variables that the README's examples export, as far as their names begin so. */
export function readmeEnvironment(prefix: string): Record<string, string> {
  const exported = [...README.matchAll(/^export ([A-Z0-9_]+)=(\S+)$/gm)].map(([, name = '', value = '']) => [
    name,
    value,
  ]);
  return Object.fromEntries(exported.filter(([name]) => name?.startsWith(prefix)));
}

/** The prices with which the README's example adds a custom model, by their names in the API. */
export function readmePrices(): Record<string, string> {
  const [command = ''] = /^.*custom-models add acme .*$/m.exec(README) ?? [];
  return Object.fromEntries(
    [...command.matchAll(/--price (\w+)=(\S+)/g)].map(([, name = '', value = '']) => [name, value]),
  );
}

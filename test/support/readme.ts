import { formatUsd, parseUsdPerMillion } from '../../src/domain/limits.ts';
import { pages } from './pages.ts';

const CONFIGURATION = pages.get('src/config/README.md') ?? '';

/** The variables with these beginnings that the examples of the configuration export. */
export function readmeEnvironment(prefix: string): Record<string, string> {
  const exported = [...CONFIGURATION.matchAll(/^export ([A-Z0-9_]+)=(\S+)$/gm)].map(([, name = '', value = '']) => [
    name,
    value,
  ]);
  return Object.fromEntries(exported.filter(([name]) => name?.startsWith(prefix)));
}

/** The prices with which the example adds a custom model, as the API takes them: in USD per token. */
export function readmePrices(): Record<string, string> {
  const [command = ''] = /^.*custom-models add acme .*$/m.exec(CONFIGURATION) ?? [];
  return Object.fromEntries(
    [...command.matchAll(/--price (\w+)=(\S+)/g)].map(([, name = '', value = '']) => [
      name,
      formatUsd(parseUsdPerMillion(value)),
    ]),
  );
}

import { InvalidArgumentError } from 'commander';

/** What a custom model can, as the command line names it, and the field that says so. */
export const CAPABILITIES = [
  { name: 'streaming', field: 'streaming' },
  { name: 'vision', field: 'vision' },
  { name: 'tools', field: 'tools' },
  { name: 'parallel-tool-calls', field: 'parallelToolCalls' },
  { name: 'reasoning', field: 'reasoning' },
  { name: 'json-output', field: 'jsonOutput' },
  { name: 'structured-outputs', field: 'structuredOutputs' },
] as const;

/** All fields, from the list of those that hold; `none`: none of them. */
export function parseCapabilities(text: string): Record<string, boolean> {
  const wanted = text === 'none' ? [] : text.split(',').map((item) => item.trim());
  const unknown = wanted.find((item) => !CAPABILITIES.some(({ name }) => name === item));
  if (unknown !== undefined) {
    throw new InvalidArgumentError(
      `It must be "none" or a comma list of ${CAPABILITIES.map(({ name }) => name).join(', ')}.`,
    );
  }
  return Object.fromEntries(CAPABILITIES.map(({ name, field }) => [field, wanted.includes(name)]));
}

import { readFileSync } from 'node:fs';
import { type CatalogData, decodeCatalogData } from './decode.ts';

/** The providers of the catalogue whose models stand in `data/<id>.json`. */
export const DATA_PROVIDERS = [
  'openai',
  'anthropic',
  'google',
  'mistral',
  'groq',
  'deepseek',
  'xai',
  'together',
  'fireworks',
  'cerebras',
  'moonshotai',
  'openrouter',
] as const;

/** One file of `data/`, read afresh. @throws Error that names the file and the first wrong place in it */
export function readDataFile(name: string): CatalogData {
  const file = `data/${name}.json`;
  try {
    return decodeCatalogData(JSON.parse(readFileSync(new URL(file, import.meta.url), 'utf8')));
  } catch (cause) {
    throw new Error(`${file}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

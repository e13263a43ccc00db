// Writes src/catalog/data/<provider>.json: the models of the reviewed table (models.json) with what two installed packages
// know of them, corrected and completed by the facts of overlay.json. No network: the same packages give the same bytes.
// `--check` writes nothing, names the stale files and exits 1. `--unlisted` prints what the packages price and the table lacks.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { KNOWN_PROVIDERS, PROVIDER_IDS } from '../src/config/upstreams.ts';
import { getOrMake } from '../src/lib/collections.ts';
import { dataFile } from './catalog/data-file.ts';
import { Entry } from './catalog/entry.ts';
import { type Joined, joinModels } from './catalog/join.ts';
import { readModelTable } from './catalog/model-table.ts';
import { idIn, type Overlay, readOverlay, youngest } from './catalog/overlay.ts';
import { GENAI_PRICES, pricedIds } from './catalog/packages.ts';
import { format } from './format.ts';

const root = path.join(import.meta.dirname, '..');
const folder = path.join(root, 'src/catalog/data');

const readJson = (file: string): unknown => JSON.parse(readFileSync(file, 'utf8'));

/** Facts are written for stated versions: others want the overlay reviewed first. */
function checkVersions(overlay: Overlay): void {
  for (const [name, { version }] of overlay.packages) {
    const installed = new Entry(readJson(path.join(root, 'node_modules', name, 'package.json')), name).text('version');
    if (installed !== version) {
      throw new Error(`overlay.json is written for ${name} ${version}, installed is ${installed}: review its facts`);
    }
  }
}

/** What nobody says of a mapping and everyone must know, each in a sentence that names it. */
export function gapsOf({ provider, externalId, model, known }: Joined): string[] {
  const { charges, contextLength, maxOutput, output, parameters } = known;
  const name = `${provider}/${model.id} (${externalId})`;
  const gaps: string[] = [];
  if (!charges.prices.has('prompt') || !charges.prices.has('completion'))
    gaps.push(`no package and no fact prices ${name}`);
  if (output.includes('text') && contextLength === undefined && maxOutput === undefined)
    gaps.push(`no package and no fact states the context or the longest answer of ${name}`);
  if (output.includes('text') && parameters.length === 0) gaps.push(`no fact states the parameters of ${name}`);
  return gaps;
}

/** The generated files of src/catalog/data as they should be. @throws Error that names what nobody says */
export function generateCatalog(): Map<string, string> {
  const [overlay, table] = [readOverlay(), readModelTable()];
  checkVersions(overlay);
  const dates = new Map<string, string>();
  const dateOf = (provider: string): string =>
    getOrMake(dates, provider, () => {
      const served = table.filter(({ at }) => at.has(provider));
      return youngest(
        overlay,
        served.map(({ id }) => `${provider}/${id}`),
      );
    });
  const joined = joinModels(table, overlay, dateOf);
  const gaps = joined.flatMap(gapsOf);
  if (gaps.length > 0) throw new Error(`overlay.json lacks facts:\n${gaps.join('\n')}`);
  return new Map(
    KNOWN_PROVIDERS.map(({ id, cancellation }) => {
      const mappings = joined.filter(({ provider }) => provider === id);
      const content = dataFile(mappings, dateOf(id), cancellation);
      return [`${id}.json`, format(`${id}.json`, JSON.stringify(content, undefined, 2))];
    }),
  );
}

function printUnlisted(): void {
  const [overlay, table] = [readOverlay(), readModelTable()];
  for (const provider of PROVIDER_IDS) {
    const listed = new Set(table.map((model) => model.at.get(provider)));
    for (const id of pricedIds(idIn(overlay, GENAI_PRICES, provider)))
      if (!listed.has(id)) console.log(`${provider}  ${id}`);
  }
}

if (import.meta.main) {
  if (process.argv.includes('--unlisted')) printUnlisted();
  else {
    for (const [name, content] of generateCatalog()) {
      const file = path.join(folder, name);
      if (process.argv.includes('--check')) {
        if (existsSync(file) && readFileSync(file, 'utf8') === content) continue;
        console.error(`src/catalog/data/${name} is stale: run \`npm run catalog:update\``);
        process.exitCode = 1;
      } else writeFileSync(file, content);
    }
  }
}

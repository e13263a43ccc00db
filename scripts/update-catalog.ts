// Writes src/catalog/data/<provider>.json: the models of the reviewed table (models.json) with what two installed packages
// know of them, corrected and completed by the facts of overlay.json. No network: the same packages give the same bytes.
// `--check` writes nothing, names the stale files and exits 1. `--unlisted` prints what the packages price and the table lacks.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { KNOWN_PROVIDERS, PROVIDER_IDS } from '../src/config/known-providers.ts';
import { dataFile } from './catalog/data-file.ts';
import { Entry } from './catalog/entry.ts';
import { joinModels } from './catalog/join.ts';
import { readModelTable } from './catalog/model-table.ts';
import { type Overlay, readOverlay } from './catalog/overlay.ts';
import { pricedIds } from './catalog/packages.ts';
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

/** When the youngest of all that the files are made of was taken. */
const dateOf = (overlay: Overlay): string =>
  [...overlay.packages.values(), ...overlay.facts].map(({ date }) => date).reduce((a, b) => (a > b ? a : b));

/** The generated files of src/catalog/data as they should be. */
export function generateCatalog(): Map<string, string> {
  const overlay = readOverlay();
  checkVersions(overlay);
  const date = dateOf(overlay);
  const joined = joinModels(readModelTable(), overlay, date);
  const cancellation = new Map(KNOWN_PROVIDERS.map((provider) => [provider.id, provider.cancellation]));
  return new Map(
    PROVIDER_IDS.map((provider) => {
      const mappings = joined.filter((mapping) => mapping.provider === provider);
      const content = dataFile(mappings, date, cancellation.get(provider));
      return [`${provider}.json`, format(`${provider}.json`, JSON.stringify(content, undefined, 2))];
    }),
  );
}

function printUnlisted(): void {
  const table = readModelTable();
  for (const provider of PROVIDER_IDS) {
    const listed = new Set(table.map((model) => model.at.get(provider)));
    for (const id of pricedIds(provider)) if (!listed.has(id)) console.log(`${provider}  ${id}`);
  }
}

if (import.meta.main) {
  if (process.argv.includes('--unlisted')) printUnlisted();
  else {
    for (const [name, content] of generateCatalog()) {
      const file = path.join(folder, name);
      if (process.argv.includes('--check')) {
        if (readFileSync(file, 'utf8') === content) continue;
        console.error(`src/catalog/data/${name} is stale: run \`npm run catalog:update\``);
        process.exitCode = 1;
      } else writeFileSync(file, content);
    }
  }
}

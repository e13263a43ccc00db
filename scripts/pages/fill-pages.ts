// The tables of the pages that say what the program has: each is made of what the program itself reads.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { gateway } from '../../src/http/operations/gateway-operations.ts';
import { management } from '../../src/http/operations/management-operations.ts';
import { commandTables } from './commands.ts';
import { gatewayTable, managementTables } from './endpoints.ts';
import { metricTable } from './metrics.ts';
import { catalogueSettings, settingTables, upstreamSettings } from './settings.ts';
import { toolTable } from './tools.ts';

const root = path.join(import.meta.dirname, '../..');

/** By page, what stands between `<!-- generated: name -->` and `<!-- end -->`. */
const PAGES: Readonly<Record<string, Readonly<Record<string, () => string>>>> = {
  'src/cli/README.md': { commands: commandTables },
  'src/config/README.md': {
    settings: settingTables,
    'settings of the catalogue': catalogueSettings,
    'settings of upstreams': upstreamSettings,
  },
  'src/http/README.md': {
    'endpoints of the gateway': () => gatewayTable(gateway),
    'endpoints of the management listener': () => managementTables(management),
    metrics: metricTable,
  },
  'src/mcp/README.md': { tools: toolTable },
};

/** @throws Error for a part that the page does not have exactly once */
function fill(page: string, name: string, text: string): string {
  const start = `<!-- generated: ${name} -->`;
  const [before, after, ...others] = page.split(`${start}\n`);
  const end = after?.indexOf('<!-- end -->') ?? -1;
  if (before === undefined || after === undefined || end === -1 || others.length > 0) {
    throw new Error(`there must be one ${start} with its <!-- end -->`);
  }
  return `${before}${start}\n\n${text}\n\n${after.slice(end)}`;
}

/** The pages as they should be, by their paths from the root. */
export function fillPages(): Map<string, string> {
  return new Map(
    Object.entries(PAGES).map(([file, parts]) => {
      let page = readFileSync(path.join(root, file), 'utf8');
      for (const [name, write] of Object.entries(parts)) page = fill(page, name, write());
      return [file, page];
    }),
  );
}

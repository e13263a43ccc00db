/** A folder of fixture files for one test, and the production path from it to a report. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import { createCatalog } from '../../src/catalog/catalog.ts';
import { systemClock } from '../../src/domain/time.ts';
import { createPdp } from '../../src/policy/pdp.ts';
import { placeText, type Report } from '../../src/workbench/fixtures/fixture-reports.ts';
import { FixtureSources } from '../../src/workbench/fixtures/fixture-source.ts';
import { type PolicyTest, type PolicyTestResult, testPolicy } from '../../src/workbench/fixtures/test-policy.ts';

const pdp = createPdp();

/** Writes files by their path below a new folder, which goes when the test ends. */
export function folderOf(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'fixtures-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(path.join(folder, name), text);
  }
  return folder;
}

export const testFolder = (cwd: string, options: Partial<PolicyTest> = {}): PolicyTestResult =>
  testPolicy({
    pdp,
    sources: new FixtureSources(),
    realCatalog: () => createCatalog({ sandbox: true, upstreams: [], clock: systemClock }),
    paths: ['.'],
    cwd,
    coverage: false,
    mutate: false,
    ...options,
  });

/** The report on one file of fixtures. */
export function reportOn(text: string, options: Partial<PolicyTest> = {}): Report {
  const result = testFolder(folderOf({ 'fixture.yaml': text }), options);
  if ('faults' in result) throw result.faults[0] ?? new Error('no fault');
  return result.report;
}

/** `file:line:column: message` of each fault; folders of the test are left out. */
export function faultsIn(files: Readonly<Record<string, string>>, options: Partial<PolicyTest> = {}): string[] {
  const folder = folderOf(files);
  const result = testFolder(folder, options);
  if (!('faults' in result)) return [];
  return result.faults.map(
    ({ place, message }) => `${placeText(place, folder)}: ${message.replaceAll(`${folder}${path.sep}`, '')}`,
  );
}

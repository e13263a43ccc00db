import path from 'node:path';
import { styleText } from 'node:util';
import type { Catalog } from '../../catalog/catalog.ts';
import { readConfig } from '../../config/config.ts';
import { counted } from '../../lib/text.ts';
import type { PolicyBundle } from '../../policy/bundle.ts';
import { createPdp, type Pdp } from '../../policy/pdp.ts';
import { bundleInFile } from '../../workbench/bundles/bundle-source.ts';
import { readExportedWorld } from '../../workbench/export/export-archive.ts';
import { DEFAULT_FOLDERS, isThere } from '../../workbench/fixtures/fixture-file.ts';
import {
  jsonReport,
  junitFaults,
  junitReport,
  placeText,
  type Report,
  textReport,
  warningLines,
} from '../../workbench/fixtures/fixture-reports.ts';
import { FixtureFault, FixtureSources } from '../../workbench/fixtures/fixture-source.ts';
import { liveRules, type TestedRules } from '../../workbench/fixtures/live-rules.ts';
import { checkCoverage, mutantFault, type Thresholds } from '../../workbench/fixtures/run-fixtures.ts';
import { changeIn, type PolicyTestResult, type Stage, testPolicy } from '../../workbench/fixtures/test-policy.ts';
import { folderRules } from '../../workbench/folder/folder-rules.ts';
import { readPolicyFolder } from '../../workbench/folder/policy-folder.ts';
import type { World } from '../../workbench/world/world.ts';
import { type ProgressBar, print, printJson, progressBar, warn } from '../terminal/output.ts';
import { UsageError } from '../terminal/usage-faults.ts';
import { type Environment, installationOf } from '../workspace.ts';
import { policyOf, worldSources } from './policy-world.ts';

export interface PolicyTestOptions {
  readonly filter?: string;
  readonly json?: true;
  readonly junit?: true;
  readonly coverage?: true;
  readonly threshold?: number;
  readonly kindsThreshold?: number;
  readonly mutate?: true;
  readonly mutantsThreshold?: number;
  readonly watch?: true;
  readonly database?: string;
  readonly rules?: string;
  readonly folder?: string;
  readonly org?: string;
  readonly bundle?: string;
}

interface Task {
  readonly env: Environment;
  readonly paths: readonly string[];
  readonly cwd: string;
  readonly options: PolicyTestOptions;
  readonly pdp: Pdp;
}

/**
 * Runs fixtures and prints their results; with `watch`, again and again until SIGINT or SIGTERM.
 * @throws UsageError for fixtures that cannot be run, Error when a request failed or too little is covered
 */
export async function runPolicyTest(
  env: Environment,
  given: readonly string[],
  options: PolicyTestOptions,
): Promise<void> {
  const cwd = process.cwd();
  const paths = given.length > 0 ? given : DEFAULT_FOLDERS.filter((folder) => isThere(folder, cwd));
  if (paths.length === 0) throw new UsageError(`There is neither ${DEFAULT_FOLDERS.join(' nor ')} here: name a path.`);
  const missing = paths.find((each) => !isThere(each, cwd));
  if (missing !== undefined) throw new UsageError(`There is no file or folder ${missing}.`);
  if (!options.coverage && (options.threshold ?? options.kindsThreshold) !== undefined) {
    throw new UsageError('A threshold goes with --coverage.');
  }
  if (!options.mutate && options.mutantsThreshold !== undefined) {
    throw new UsageError('--mutants-threshold goes with --mutate.');
  }
  if (given.length === 0 && !options.json && !options.junit) print(`Testing ${paths.join(' and ')}.`);
  const task = { env, paths, cwd, options, pdp: createPdp(await testedBundle(env, options)) };
  if (options.watch) await watching(task);
  else requireSuccess(runOnce(task, new FixtureSources()), options);
}

/** The bundle of a file that is named, otherwise the policy in force. */
const testedBundle = async (env: Environment, { bundle }: PolicyTestOptions): Promise<PolicyBundle> =>
  bundle === undefined ? policyOf(env) : bundleInFile(bundle);

/** Runs and prints. @throws UsageError, after a line for each fault, for fixtures that cannot be run */
function runOnce(task: Task, sources: FixtureSources): Report {
  const { options, cwd } = task;
  try {
    const result = run(task, sources);
    if ('faults' in result) throw refusal(result.faults, task);
    if (result.report.results.length === 0) throw new UsageError('No fixture was found.');
    show(result.report, cwd, options);
    for (const line of warningLines(result.report, cwd)) process.stderr.write(`${line}\n`);
    return result.report;
  } catch (error) {
    throw error instanceof FixtureFault ? refusal([error], task) : error;
  }
}

/** With a progress bar on a terminal. @throws FixtureFault for rules from elsewhere that make no sense */
function run(task: Task, sources: FixtureSources): PolicyTestResult {
  const { options, paths, cwd, pdp } = task;
  const rules = testedRules(task, sources);
  if (rules !== undefined && 'faults' in rules) return rules;
  const bars: Readonly<Record<Stage, ProgressBar>> = {
    reading: progressBar('Reading files'),
    running: progressBar('Running fixtures'),
    measuring: progressBar('Measuring coverage'),
    mutating: progressBar('Changing rules'),
  };
  try {
    return testPolicy({
      pdp,
      sources,
      realCatalog: () => catalogOf(task),
      paths,
      cwd,
      coverage: options.coverage === true,
      mutate: options.mutate === true,
      onProgress: (stage, done, all) => bars[stage].show(done, all),
      ...(options.filter === undefined ? {} : { filter: options.filter }),
      ...(rules === undefined ? {} : { rules }),
    });
  } finally {
    bars.running.end();
  }
}

function refusal(faults: readonly FixtureFault[], { cwd, options }: Task): UsageError {
  if (options.junit) print(junitFaults(faults, cwd));
  for (const { place, message } of faults) process.stderr.write(`${placeText(place, cwd)}: ${message}\n`);
  return new UsageError(`Nothing was run: ${counted(faults.length, 'fault')} in fixtures.`);
}

const catalogOf = ({ env }: Task): Catalog => installationOf(readConfig(env)).catalog;

/** The rules that are tested, if not the fixtures' own. */
function testedRules(
  task: Task,
  sources: FixtureSources,
): TestedRules | { readonly faults: readonly FixtureFault[] } | undefined {
  const { folder } = task.options;
  if (folder !== undefined) {
    if (!isThere(folder, task.cwd)) throw new UsageError(`There is no folder or file ${folder}.`);
    const read = readPolicyFolder(path.resolve(task.cwd, folder), sources);
    return 'faults' in read ? read : folderRules(read);
  }
  const world = worldOf(task, sources);
  return world === undefined ? undefined : liveRules(world);
}

function worldOf(task: Task, sources: FixtureSources): World | undefined {
  const { env, cwd, options } = task;
  if (options.rules !== undefined) {
    if (!isThere(options.rules, cwd)) throw new UsageError(`There is no file ${options.rules}.`);
    return readExportedWorld(sources, path.resolve(cwd, options.rules), catalogOf(task));
  }
  return options.database === undefined
    ? undefined
    : worldSources(env, options.org).at(path.resolve(cwd, options.database));
}

function show(report: Report, cwd: string, options: PolicyTestOptions): void {
  const { json, junit } = options;
  if (json) printJson(jsonReport(report, cwd));
  else if (junit) print(junitReport(report, cwd, thresholdsOf(options)));
  else print(textReport(report, { cwd, paint: (colour, text) => styleText(colour, text, { stream: process.stdout }) }));
}

const thresholdsOf = ({
  threshold = 100,
  kindsThreshold = threshold,
  mutantsThreshold = 100,
}: PolicyTestOptions): Thresholds => ({ rules: threshold, kinds: kindsThreshold, mutants: mutantsThreshold });

function requireSuccess(report: Report, options: PolicyTestOptions): void {
  const failed = report.results.filter(({ status }) => status === 'failed').length;
  if (failed > 0) throw new Error(`${counted(failed, 'fixture')} failed.`);
  const { coverage, mutants } = report;
  const thresholds = thresholdsOf(options);
  const faults = [
    ...(coverage === undefined ? [] : checkCoverage(coverage, thresholds).map(({ fault }) => fault)),
    ...(mutants === undefined ? [] : [mutantFault(mutants, thresholds)]),
  ].filter((fault) => fault !== null);
  if (faults.length > 0) throw new Error(faults.join(' '));
}

async function watching(task: Task): Promise<void> {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
  while (!stop.signal.aborted) {
    const sources = new FixtureSources();
    try {
      requireSuccess(runOnce(task, sources), task.options);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      warn(error.message);
    }
    print(`\nWatching ${task.paths.join(', ')}; Ctrl-C ends.\n`);
    const places = [...task.paths.map((each) => path.resolve(task.cwd, each)), ...sources.files];
    await changeIn(places, () => sources.areStale, stop.signal);
  }
}

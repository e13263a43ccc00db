import { existsSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import type { Catalog } from '../../catalog/catalog.ts';
import { type Config, readConfig } from '../../config/config.ts';
import { ApiError } from '../../domain/errors.ts';
import type { Mapping } from '../../domain/model.ts';
import type { RuleWidening } from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import type { PolicyBundle } from '../../policy/bundle.ts';
import { type Dispensable, inspectDatabase } from '../../store/backup/check-data-dir.ts';
import { databasePath, hasDatabase } from '../../store/db/data-dir.ts';
import { openDatabase } from '../../store/db/database.ts';
import { applyDrafts, draftWarnings, widening } from '../../workbench/analysis/drafts.ts';
import {
  changesAnything,
  comparedWorlds,
  type Rehearsal,
  rehearse,
  rehearsedWidening,
} from '../../workbench/analysis/rehearsal.ts';
import { bundleInForce } from '../../workbench/bundles/bundle-source.ts';
import { checkedShape, locating } from '../../workbench/fixtures/fixture-rules.ts';
import { FixtureFault, FixtureSources } from '../../workbench/fixtures/fixture-source.ts';
import { organizationSets } from '../../workbench/world/candidates.ts';
import { createJudges, type Judges, type OnProgress } from '../../workbench/world/judges.ts';
import { readWorld, type World, worldOf } from '../../workbench/world/world.ts';
import { readWorldDocument } from '../../workbench/world/world-document.ts';
import { readJsonFile } from '../terminal/arguments.ts';
import { progressBar } from '../terminal/output.ts';
import { UsageError } from '../terminal/usage-faults.ts';
import {
  BUSY_TIMEOUT_MS,
  checked,
  checkIsKnown,
  type Environment,
  inWorkspace,
  type Served,
  servedIn,
  type Workspace,
} from '../workspace.ts';

/** The rules in a folder that `policy export` wrote. */
const EXPORTED = 'world.json';
/** Threads that judge, in addition to the one that composes. */
export const THREADS = Math.min(2, availableParallelism());

/** Input of analyses: the configuration's catalogue, and worlds of several sources judged by it. */
export interface Sources {
  readonly config: Config;
  readonly catalog: Catalog;
  readonly served: Served;
  /** The world of the database in `DATA_DIR`. */
  current(): World;
  /** The world of another database, by its `DATA_DIR`, or of a document that `policy export` wrote. */
  at(source: string): World;
}

/** @param organizationId absent: all organizations */
export function worldSources(env: Environment, organizationId?: string, against?: 'env'): Sources {
  const config = readConfig(env);
  const served = servedIn(config, against);
  const { installation } = served;
  const { catalog } = installation;
  const ofDatabase = (folder: string): World => {
    const db = openDatabase(databasePath(folder), { readonly: true, busyTimeoutMs: BUSY_TIMEOUT_MS });
    try {
      return readWorld(db, installation, organizationId);
    } finally {
      db.close();
    }
  };
  const known = (world: World): World => {
    if (organizationId === undefined || world.organizations.has(organizationId)) return world;
    throw new Error(`There is no organization ${organizationId}.`);
  };
  return {
    config,
    catalog,
    served,
    current() {
      checked(config);
      return known(ofDatabase(config.dataDir));
    },
    at(source) {
      const stats = statSync(source, { throwIfNoEntry: false });
      if (stats === undefined) throw new UsageError(`There is no folder or file ${source}.`);
      const document = stats.isDirectory() ? path.join(source, EXPORTED) : source;
      if (!existsSync(document)) {
        if (!hasDatabase(source)) throw new UsageError(`${source} holds neither a database nor ${EXPORTED}.`);
        inspectDatabase(databasePath(source), () => {});
        return known(ofDatabase(source));
      }
      const world = readExport(document, catalog);
      return known(organizationId === undefined ? world : worldOf(world, new Set([organizationId])));
    },
  };
}

function readExport(file: string, catalog: Catalog): World {
  try {
    return readWorldDocument(readJsonFile(file), catalog);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new UsageError(`${file}: ${error.message}`);
  }
}

/** A world with the changed rules of a file, and what may not be as it was meant in them. */
export interface DraftedWorld {
  readonly world: World;
  readonly warnings: readonly string[];
}

/** @param file YAML or JSON. @throws UsageError that names file, line and fault */
export function withDraftFile(world: World, file: string): DraftedWorld {
  if (!existsSync(file)) throw new UsageError(`There is no file ${file}.`);
  try {
    const [document, ...others] = new FixtureSources().read(path.resolve(file));
    if (document === undefined || others.length > 0) throw new UsageError(`${file} must hold one document.`);
    const { rules } = checkedShape(validator('DraftRules'), document);
    const drafted = locating(document, [], () => applyDrafts(world, rules));
    return { world: drafted, warnings: draftWarnings(drafted, rules) };
  } catch (error) {
    if (!(error instanceof FixtureFault)) throw error;
    const { line, column } = error.place;
    throw new UsageError(`${file}:${line}:${column}: ${error.message}`);
  }
}

/**
 * Does some work for each part of the organizations, by the mappings that mean the same to all of it.
 * @param work gets its mappings, and what leaves a world without all other organizations
 */
export async function inParts<T>(
  worlds: readonly World[],
  work: (mappings: readonly Mapping[], within: (world: World) => World) => Promise<T>,
): Promise<T[]> {
  const results: T[] = [];
  for (const { organizationIds, mappings } of organizationSets(worlds)) {
    results.push(await work(mappings, (world) => worldOf(world, organizationIds)));
  }
  return results;
}

/** The policy by which the server decides that has this environment. */
export const policyOf = (env: Environment): PolicyBundle => bundleInForce(readConfig(env));

/** Lends judges of the policy in force, with a progress bar on a terminal. */
export async function withJudges<T>(
  env: Environment,
  mappings: readonly Mapping[],
  work: (judges: Judges, onProgress: OnProgress) => Promise<T>,
): Promise<T> {
  const judges = createJudges(policyOf(env), mappings, THREADS);
  const bar = progressBar('judging');
  try {
    return await work(judges, bar.show);
  } finally {
    bar.end();
    await judges.close();
  }
}

/** Judges in this process which access a change adds. @throws PolicyFailure */
export async function judgeWidening(
  env: Environment,
  org: string | undefined,
  change: Parameters<typeof widening>[2],
  failOnNewAccess: boolean,
): Promise<RuleWidening> {
  const { served, world } = await inWorkspace(env, 'read', org, ({ db, actor, served }) => {
    const there = served();
    return { served: there, world: readWorld(db, there.installation, actor.organizationId) };
  });
  if (failOnNewAccess) checkIsKnown(served);
  const [part] = organizationSets([world]);
  return withJudges(env, part?.mappings ?? [], (judges, progress) => widening(judges, world, change, progress));
}

/** A change that was made and undone, and what the server serves. */
export interface RehearsedChange extends Rehearsal {
  readonly world: World;
  readonly served: Served;
  readonly matters: boolean;
  readonly failOnNewAccess: boolean;
}

/** Makes a change, and undoes it. */
export const rehearseIn = (
  env: Environment,
  org: string | undefined,
  change: (workspace: Workspace) => unknown,
  failOnNewAccess: boolean,
  dispensable: readonly Dispensable[],
): Promise<RehearsedChange> =>
  inWorkspace(
    env,
    'write',
    org,
    (workspace) => {
      const { db, actor } = workspace;
      const rehearsal = rehearse(db, actor.organizationId, () => change(workspace));
      const served = workspace.served();
      const world = readWorld(db, served.installation, actor.organizationId);
      return { ...rehearsal, world, served, matters: changesAnything(rehearsal), failOnNewAccess };
    },
    ...dispensable,
  );

/** Judges in this process which access a rehearsed change adds. @throws PolicyFailure */
export async function judgeRehearsal(env: Environment, change: RehearsedChange): Promise<RuleWidening> {
  if (change.failOnNewAccess) checkIsKnown(change.served);
  const worlds = comparedWorlds(change.world, change);
  return withJudges(env, worlds.mappings.judged, (judges, progress) => rehearsedWidening(judges, worlds, progress));
}

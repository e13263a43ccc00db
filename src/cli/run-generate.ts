import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { createPdp } from '../policy/pdp.ts';
import { MAX_BYTES } from '../workbench/fixture-source.ts';
import { generateFixtures } from '../workbench/generate-fixtures.ts';
import { fixtureText } from '../workbench/generate-text.ts';
import { listOf } from '../workbench/lists.ts';
import { readWorld, type World, type WorldKey } from '../workbench/world.ts';
import { print, printJson } from './output.ts';
import { worldSources } from './policy-world.ts';
import { keyId } from './references.ts';
import { UsageError } from './usage-error.ts';
import { type Environment, inWorkspace } from './workspace.ts';

export interface GenerateOptions {
  readonly key?: string;
  readonly database?: string | true;
  readonly rules?: string;
  readonly output: string;
  readonly org?: string;
  readonly json?: true;
}

/** Writes the fixtures and says how many. @throws Error when there are no rules, or too many for one file */
export async function runGenerate(env: Environment, options: GenerateOptions): Promise<void> {
  const { key, database, rules, output, json } = options;
  if ((key ?? database ?? rules) === undefined) throw new UsageError('Say whose rules: --key, --database or --rules.');
  const { world, only } = await worldOf(env, options);
  const pdp = createPdp();
  const fixtures = generateFixtures(world, pdp, only);
  if (fixtures.length === 0) throw new Error('There are no active rules to make fixtures of.');
  const text = fixtureText(fixtures, HEADER);
  if (Buffer.byteLength(text) > MAX_BYTES) {
    throw new Error(
      `The fixtures would take more than the ${MAX_BYTES} bytes of a file: name one key at a time, by --key.`,
    );
  }
  writeFileSync(path.resolve(output), text);
  const requests = fixtures.reduce(
    (sum, fixture) => sum + listOf(fixture.requests.model).length * listOf(fixture.requests.address).length,
    0,
  );
  if (json) printJson({ file: output, fixtures: fixtures.length, requests });
  else print(`Wrote ${fixtures.length} fixtures with ${requests} requests to ${output}.`);
}

const HEADER = `Written by \`portcullis policy generate\`. What is expected is what the policy decided then, right or wrong:
read it before you rely on it. Each rule stands alone first; where several meet the same calls, all of them together follow.`;

async function worldOf(env: Environment, options: GenerateOptions): Promise<{ world: World; only?: WorldKey }> {
  const { key, database, rules, org } = options;
  if (rules !== undefined) return { world: worldSources(env, org).at(rules) };
  const there = typeof database === 'string' ? { ...env, DATA_DIR: path.resolve(database) } : env;
  return inWorkspace(there, 'read', org, (workspace) => {
    const world = readWorld(workspace.db, workspace.installation(), workspace.actor.organizationId);
    if (key === undefined) return { world };
    const only = world.keys.get(keyId(workspace, key));
    if (only === undefined) throw new Error(`The key "${key}" cannot call the gateway.`);
    return { world, only };
  });
}

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { seenBy } from '../../admin/log/log-query.ts';
import { getLoggedDecision } from '../../admin/log/log-view.ts';
import { counted } from '../../lib/text.ts';
import { createPdp, type Pdp } from '../../policy/pdp.ts';
import { hasDatabase } from '../../store/db/data-dir.ts';
import { listOf, MAX_BYTES } from '../../workbench/fixtures/fixture-source.ts';
import { decidedOtherwise, decisionFixture } from '../../workbench/generate/decision-fixture.ts';
import { fixtureText, type GeneratedFixture, generateFixtures } from '../../workbench/generate/generate-fixtures.ts';
import { holderId, keyHolder, type RuleHolder, ruleHolders } from '../../workbench/generate/generate-given.ts';
import { readWorld, type World, type WorldKey } from '../../workbench/world/world.ts';
import { callIdOf } from '../log-commands.ts';
import { keyId } from '../record-references.ts';
import { checkWritable } from '../terminal/arguments.ts';
import { type ProgressBar, print, printJson, progressBar, warn } from '../terminal/output.ts';
import { UsageError } from '../terminal/usage-faults.ts';
import { type Environment, inWorkspace } from '../workspace.ts';
import { policyOf, worldSources } from './policy-world.ts';

export interface GenerateOptions {
  readonly key?: string;
  readonly database?: string | true;
  readonly rules?: string;
  readonly output: string;
  readonly org?: string;
  readonly json?: true;
}

/** A folder is written unless the output has the name of a file. */
const FILE = /\.ya?ml$/;

/**
 * Writes the fixtures, all into one file or those of each subject into its own, and says how many.
 * @throws Error when there are no rules, or too many for one file
 */
export async function runGenerate(
  env: Environment,
  options: GenerateOptions,
  bar = progressBar('Generating fixtures'),
): Promise<void> {
  const { key, database, rules, output, json } = options;
  if ((key ?? database ?? rules) === undefined)
    throw new UsageError('Choose whose rules: --key, --database or --rules.');
  if (FILE.test(output)) checkWritable(output);
  const { world, only } = await worldOf(env, options);
  const holders = ruleHolders(world, only);
  if (holders.length === 0) throw new Error('There are no active rules to generate fixtures from.');
  const pdp = createPdp(policyOf(env));
  const { files, fixtures, requests } = FILE.test(output)
    ? writeFile({ pdp, world, holders, bar }, output)
    : writeFolder({ pdp, world, holders, bar }, output);
  const counts = { fixtures, requests };
  if (json) printJson(FILE.test(output) ? { file: output, ...counts } : { folder: output, files, ...counts });
  else {
    const place = FILE.test(output) ? output : `${counted(files, 'file')} in ${output}`;
    print(`Wrote ${counted(fixtures, 'fixture')} with ${counted(requests, 'request')} to ${place}.`);
  }
}

export interface DecisionFixtureOptions {
  readonly output?: string;
  readonly org?: string;
}

const DECISION_HEADER = `Written by \`portcullis policy fixture\`. What is expected is what was decided then; the rules are those of today.`;

/** Prints a decision as a fixture, or writes it to a new file. @throws Error if its key can no longer call the gateway */
export async function runDecisionFixture(env: Environment, id: string, options: DecisionFixtureOptions): Promise<void> {
  const { output } = options;
  if (output !== undefined) checkWritable(output);
  const { decision, holder } = await inWorkspace(env, 'read', options.org, (workspace) => {
    const { db, actor } = workspace;
    const found = getLoggedDecision(db, seenBy(actor), callIdOf(workspace, id));
    const world = readWorld(db, workspace.installation(), actor.organizationId);
    const key = world.keys.get(found.keyId);
    return { decision: found, holder: key === undefined ? undefined : keyHolder(world, key) };
  });
  if (holder === undefined)
    throw new Error(`The key of this decision, ${decision.keyId}, can no longer call the gateway.`);
  const fixture = decisionFixture(decision, holder);
  const text = fixtureText([fixture], DECISION_HEADER);
  if (output === undefined) print(text.trimEnd());
  else {
    writeFileSync(path.resolve(output), text);
    print(`Wrote the fixture of ${decision.id} to ${output}.`);
  }
  const changed = decidedOtherwise(createPdp(policyOf(env)), decision, fixture);
  if (changed.length > 0) {
    warn(`Today's rules decide otherwise, so the fixture fails until they decide as then: ${changed.join(', ')}.`);
  }
}

interface Written {
  readonly files: number;
  readonly fixtures: number;
  readonly requests: number;
}

/** The work of one command. The bar shows how many holders are done. */
interface Work {
  readonly pdp: Pdp;
  readonly world: World;
  readonly holders: readonly RuleHolder[];
  readonly bar: ProgressBar;
}

/** Makes the fixtures of each holder and hands them on. */
function eachHolder(
  { pdp, world, holders, bar }: Work,
  take: (fixtures: readonly GeneratedFixture[], holder: RuleHolder) => void,
): Pick<Written, 'fixtures' | 'requests'> {
  const sum = { fixtures: 0, requests: 0 };
  for (const [index, holder] of holders.entries()) {
    const fixtures = generateFixtures(world, pdp, holder);
    take(fixtures, holder);
    sum.fixtures += fixtures.length;
    for (const { requests } of fixtures)
      sum.requests += listOf(requests.model).length * listOf(requests.address).length;
    bar.show(index + 1, holders.length);
  }
  bar.end();
  return sum;
}

function writeFile(work: Work, file: string): Written {
  const all: GeneratedFixture[] = [];
  const sum = eachHolder(work, (fixtures) => all.push(...fixtures));
  const [text = '', ...more] = textsOf(all);
  if (more.length > 0)
    throw new Error(`The fixtures would take more than the ${MAX_BYTES} bytes of a file: name a folder.`);
  writeFileSync(path.resolve(file), text);
  return { files: 1, ...sum };
}

/** One file for each subject with rules; where one is not enough, several. */
function writeFolder(work: Work, folder: string): Written {
  mkdirSync(path.resolve(folder), { recursive: true });
  let files = 0;
  const sum = eachHolder(work, (fixtures, holder) => {
    const texts = textsOf(fixtures);
    for (const [index, text] of texts.entries()) {
      const part = texts.length === 1 ? '' : `.${index + 1}`;
      writeFileSync(path.resolve(folder, `${fileName(holder)}${part}.yaml`), text);
    }
    files += texts.length;
  });
  return { files, ...sum };
}

/** For people, then for certain: `ci-of-the-team.key_1`. */
function fileName(holder: RuleHolder): string {
  const name = holder.name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
    .slice(0, 60);
  const id = holderId(holder);
  return name === '' || holder.name === id ? id : `${name}.${id}`;
}

/** The text of a file, or of as many as it takes. @throws Error for a fixture that no file can hold */
function textsOf(fixtures: readonly GeneratedFixture[]): string[] {
  const text = fixtureText(fixtures, HEADER);
  if (Buffer.byteLength(text) <= MAX_BYTES) return [text];
  const middle = Math.ceil(fixtures.length / 2);
  if (middle === fixtures.length) throw new Error(`A fixture would take more than the ${MAX_BYTES} bytes of a file.`);
  return [...textsOf(fixtures.slice(0, middle)), ...textsOf(fixtures.slice(middle))];
}

const HEADER = `Written by \`portcullis policy generate\`. What is expected is what the policy decided then, right or wrong:
read it before you rely on it. Each rule stands alone first; where several meet the same calls, all of them together follow.`;

async function worldOf(env: Environment, options: GenerateOptions): Promise<{ world: World; only?: WorldKey }> {
  const { key, database, rules, org } = options;
  if (rules !== undefined) return { world: worldSources(env, org).at(rules) };
  if (typeof database === 'string' && !hasDatabase(path.resolve(database))) {
    throw new UsageError(`There is no database in ${database}.`);
  }
  const there = typeof database === 'string' ? { ...env, DATA_DIR: path.resolve(database) } : env;
  return inWorkspace(there, 'read', org, (workspace) => {
    const world = readWorld(workspace.db, workspace.installation(), workspace.actor.organizationId);
    if (key === undefined) return { world };
    const only = world.keys.get(keyId(workspace, key));
    if (only === undefined) throw new Error(`The key "${key}" cannot call the gateway.`);
    return { world, only };
  });
}

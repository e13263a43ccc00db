import { unknownModel } from '../../core/resolve.ts';
import type { Mapping } from '../../domain/model.ts';
import type { AccessOverviewHolder } from '../../generated/types.ts';
import { counted } from '../../lib/text.ts';
import { accessOverview } from '../../workbench/analysis/access.ts';
import { meaningOfName } from '../../workbench/world/candidates.ts';
import type { World } from '../../workbench/world/world.ts';
import { type Cell, type Format, free, print, printJson, printTable } from '../terminal/output.ts';
import type { Environment } from '../workspace.ts';
import { addressText } from './access-output.ts';
import { inParts, withJudges, worldSources } from './policy-world.ts';

interface Options {
  readonly org?: string;
  readonly json?: true;
  readonly wide?: true;
  readonly withoutCredential?: boolean;
  readonly against?: 'env';
}

/** `portcullis access --model`: every key and member that reaches a model, by which providers and from where. */
export async function runModelAccess(env: Environment, model: string, options: Options): Promise<void> {
  const { served, current } = worldSources(env, options.org, options.against);
  const world = current();
  const shown = { withoutCredential: true };
  let known = false;
  const overviews = await inParts([world], async (_, within) => {
    const part = within(world);
    const meant = meantByProject(part, model);
    if (meant.size === 0) return { holders: [] };
    known = true;
    const all = new Map([...meant.values()].flat().map((mapping) => [mapping.id, mapping]));
    const overview = await withJudges(env, [...all.values()], (judges, progress) =>
      accessOverview(judges, part, shown, progress),
    );
    return { holders: overview.holders.map((holder) => reachedOf(holder, meant.get(projectOf(part, holder)) ?? [])) };
  });
  if (!known)
    throw unknownModel(
      model,
      world.catalog.mappings().flatMap(({ names }) => names),
    );
  const { withoutCredential = false, json, wide } = options;
  const reaching = overviews.flatMap(({ holders }) => holders).filter((holder) => reaches(holder, withoutCredential));
  const holders = withoutCredential ? reaching : reaching.map(callable);
  if (json) printJson({ model, holders });
  else {
    show(model, holders, { withoutCredential, wide });
    print(served.text);
  }
}

/** The meaning of a name for the keys of each project, and under null where no project is known: an alias may be of a project. */
function meantByProject(part: World, model: string): ReadonlyMap<string | null, readonly Mapping[]> {
  const [organizationId = ''] = part.organizations.keys();
  const projects = new Set([null, ...[...part.keys.values()].map(({ projectId }) => projectId)]);
  return new Map(
    [...projects].flatMap((projectId) => {
      const meant = meaningOfName(part, { organizationId, projectId }, model);
      return meant === undefined ? [] : [[projectId, meant.mappings] as const];
    }),
  );
}

const projectOf = ({ keys }: World, { id }: AccessOverviewHolder): string | null => keys.get(id)?.projectId ?? null;

/** A holder with those of these mappings that it reaches, in their order. */
function reachedOf(holder: AccessOverviewHolder, mappings: readonly Mapping[]): AccessOverviewHolder {
  const among = (ids: readonly string[]): string[] => mappings.flatMap(({ id }) => (ids.includes(id) ? [id] : []));
  const { mappingsWithoutCredential: others = [] } = holder;
  return { ...holder, mappings: among(holder.mappings), mappingsWithoutCredential: among(others) };
}

const reaches = ({ mappings, mappingsWithoutCredential = [] }: AccessOverviewHolder, all: boolean): boolean =>
  mappings.length > 0 || (all && mappingsWithoutCredential.length > 0);

const callable = ({ mappingsWithoutCredential: _, ...holder }: AccessOverviewHolder): AccessOverviewHolder => holder;

/** The provider in `provider/model`. */
const providerOf = (mapping: string): string => mapping.slice(0, mapping.indexOf('/'));

const row = ({
  scope,
  id,
  name,
  mappings,
  mappingsWithoutCredential = [],
  addresses,
}: AccessOverviewHolder): Cell[] => [
  { text: name || '-' },
  { text: id },
  { text: scope },
  {
    text: [
      ...mappings.map(providerOf),
      ...mappingsWithoutCredential.map((mapping) => `${providerOf(mapping)} (no credential)`),
    ].join(', '),
  },
  { text: addressText(addresses) },
];

type Shown = Format & { readonly withoutCredential: boolean };

function show(model: string, holders: readonly AccessOverviewHolder[], { withoutCredential, wide }: Shown): void {
  const hint = withoutCredential ? '' : ' --without-credential also counts providers that cannot be called.';
  printTable(
    [free('NAME'), 'ID', 'SCOPE', free('PROVIDERS'), free('FROM ADDRESS')],
    holders.map(row),
    `No key and no member reaches ${model}.${hint}`,
    { wide },
  );
  if (holders.length === 0) return;
  const keys = holders.filter(({ scope }) => scope === 'key').length;
  const members = holders.length - keys;
  const who = [counted(keys, 'key'), `${counted(members, 'member')} (with a key without rules)`];
  print(`\n${who.join(' and ')} reach ${model}.`);
}

import { listCustomModels } from '../../admin/providers/custom-models.ts';
import { listCustomProviders } from '../../admin/providers/custom-providers.ts';
import { listProviderKeys } from '../../admin/providers/provider-keys.ts';
import type { CustomModelRecord, CustomProviderRecord, ProviderKeyRecord } from '../../generated/types.ts';
import { everyPage } from './references.ts';
import type { Workspace } from './workspace.ts';

/** All provider keys: those of one provider together, in the order in which they are tried. */
export const everyProviderKey = ({ db, actor }: Workspace): ProviderKeyRecord[] =>
  everyPage((page) => {
    const { providerKeys: items, nextCursor } = listProviderKeys(db, actor, page);
    return { items, nextCursor };
  }).sort((a, b) => (a.provider === b.provider ? a.position - b.position : a.provider < b.provider ? -1 : 1));

/** All custom providers, newest first. */
export const everyCustomProvider = ({ db, actor }: Workspace): CustomProviderRecord[] =>
  everyPage((page) => {
    const { customProviders: items, nextCursor } = listCustomProviders(db, actor, page);
    return { items, nextCursor };
  });

/** All custom models, newest first; of one provider when its id is given. */
export const everyCustomModel = ({ db, actor }: Workspace, customProviderId?: string): CustomModelRecord[] =>
  everyPage((page) => {
    const { customModels: items, nextCursor } = listCustomModels(db, actor, { ...page, customProviderId });
    return { items, nextCursor };
  });

/** The id of the one item that is meant. */
function meant<T extends { readonly id: string }>(
  items: readonly T[],
  nameOf: (item: T) => string,
  reference: string,
  what: string,
): string {
  const found = items.filter((item) => item.id === reference || nameOf(item) === reference);
  const [item] = found;
  if (item === undefined) throw new Error(`There is no ${what} "${reference}".`);
  if (found.length > 1) throw new Error(`"${reference}" matches several: ${found.map(({ id }) => id).join(', ')}.`);
  return item.id;
}

/** By id or label. */
export const providerKeyId = (workspace: Workspace, reference: string): string =>
  meant(everyProviderKey(workspace), ({ label }) => label, reference, 'provider key with the id or label');

/** By id or name, also written `custom:<name>`. */
export const customProviderId = (workspace: Workspace, reference: string): string =>
  meant(
    everyCustomProvider(workspace),
    ({ name }) => name,
    reference.replace(/^custom:/, ''),
    'custom provider with the id or name',
  );

/** By id or `<custom provider>/<model>`. */
export const customModelId = (workspace: Workspace, reference: string): string =>
  meant(everyCustomModel(workspace), ({ name }) => name, reference, 'custom model with the id or name');

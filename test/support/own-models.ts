import type { Actor } from '../../src/admin/audit/audit-trail.ts';
import { createCustomModel } from '../../src/admin/providers/custom-models.ts';
import { createCustomProvider } from '../../src/admin/providers/custom-providers.ts';
import { createCatalog } from '../../src/catalog/catalog.ts';
import type { Endpoint } from '../../src/domain/address.ts';
import { systemClock } from '../../src/domain/time.ts';
import type { Database } from '../../src/store/db/database.ts';

/** What `createCustomModel` takes of a model, but for its name and provider. */
type ModelContent = Readonly<Record<string, unknown>>;

/** A model whose calls cost exactly what is reserved for them, whatever they say: 0.01 USD. */
export const FLAT: ModelContent = {
  maxOutput: 1000,
  pricing: { prompt: '0', completion: '0', request: '0.01' },
};

const catalog = createCatalog({ sandbox: true, upstreams: [], clock: systemClock });

/** Makes an upstream the organization's own provider, `own`, that asks for no key, with these models; they are called `own/<name>`. Returns its id. */
export function addOwnModels(
  db: Database,
  { organizationId }: { readonly organizationId: string },
  origin: string,
  allowPrivateUpstreams: readonly Endpoint[],
  models: Readonly<Record<string, ModelContent>>,
  provider: object = {},
): string {
  const actor: Actor = { kind: 'cli', organizationId };
  const body = { name: 'own', baseUrl: `${origin}/v1`, keyless: true, ...provider };
  const write = { now: Date.now(), catalog, allowPrivateUpstreams };
  const { customProvider } = createCustomProvider(db, actor, body, write);
  for (const [model, content] of Object.entries(models)) {
    createCustomModel(db, actor, { customProviderId: customProvider.id, model, ...content }, Date.now());
  }
  return customProvider.id;
}

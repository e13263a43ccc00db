import { AUTO, choicesFor } from '../core/auto-choices.ts';
import { canonicalAddress } from '../domain/client-ip.ts';
import type { Mapping } from '../domain/model.ts';
import { systemClock } from '../domain/time.ts';
import type { FixtureRequests, PolicyInput } from '../generated/types.ts';
import type { Given } from './fixture-given.ts';
import { FixtureFault, type Path, type SourceDocument } from './fixture-source.ts';
import { listOf } from './lists.ts';
import { activeMappings } from './world.ts';

export const AXES = ['action', 'key', 'model', 'provider', 'address'] as const;
export type Axis = (typeof AXES)[number];

/** One combination, each axis as it is written in the fixture. */
type RequestLabels = Readonly<Record<Axis, string>>;

/** What a request asks for; `list`: the list of models. */
type FixtureAction = PolicyInput['action'] | 'list';

/** A request of a fixture, with what the gateway would make of it. */
export interface FixtureRequest {
  readonly labels: RequestLabels;
  readonly action: FixtureAction;
  readonly clientIp: string | null;
  /**
   * Every active mapping that could serve it and for which there is a credential; none: 404. Of `auto` all that it can choose,
   * cheapest first; of a list all that could stand in it.
   */
  readonly candidates: readonly Mapping[];
}

/** Whether the gateway chooses the model. */
export const isAuto = ({ action, labels: { model, provider } }: FixtureRequest): boolean =>
  action === 'chat' && model === AUTO && provider === 'any';

const MAX_REQUESTS = 10_000;
const ACTIONS: readonly FixtureAction[] = ['chat', 'moderation', 'image', 'list'];

/** What each axis of the matrix holds, defaults filled in. @throws FixtureFault for a value that means nothing. */
export function readAxes(
  document: SourceDocument,
  requests: FixtureRequests,
  given: Given,
): Readonly<Record<Axis, readonly string[]>> {
  const axes = {
    action: orDefault(requests.action, 'chat'),
    key: orDefault(requests.key, ...(given.keys.size === 1 ? given.keys.keys() : [])),
    model: orDefault(requests.model, ...(requests.action === 'list' ? ['any'] : [])),
    provider: orDefault(requests.provider, 'any'),
    address: orDefault(requests.address, 'unknown'),
  };
  const fault = (message: string) => new FixtureFault(document.placeOf(['requests']), message);
  if (axes.key.length === 0) throw fault('There are several keys: say which ones, by `key`.');
  if (axes.action.includes('list') && (axes.action.length > 1 || (requests.model ?? requests.provider) !== undefined)) {
    throw fault('The action `list` stands alone, without a model and a provider.');
  }
  if (axes.model.length === 0) throw fault('/requests/model is missing.');
  const providers = new Set(given.catalog.mappings().map(({ providerId }) => providerId));
  requireEach(document, 'action', requests, (text) => (isAction(text) ? null : `it is one of ${ACTIONS.join(', ')}`));
  requireEach(document, 'key', requests, (text) => (given.keys.has(text) ? null : 'no such key is given'));
  requireEach(document, 'model', requests, () => null);
  requireEach(document, 'provider', requests, (text) =>
    text === 'any' || providers.has(text) ? null : 'the catalogue has no such provider',
  );
  requireEach(document, 'address', requests, (text) =>
    addressOf(given, text) === undefined ? 'it is an address, `unknown`, or a name under `given.addresses`' : null,
  );
  const size = AXES.reduce((product, axis) => product * axes[axis].length, 1);
  if (size > MAX_REQUESTS) {
    throw fault(`These are ${size} requests; at most ${MAX_REQUESTS} fit.`);
  }
  return axes;
}

const orDefault = (written: string | readonly string[] | undefined, ...other: string[]): readonly string[] =>
  written === undefined ? other : listOf(written);

const isAction = (text: string): text is FixtureAction => ACTIONS.some((action) => action === text);

function requireEach(
  document: SourceDocument,
  axis: Axis,
  requests: FixtureRequests,
  faultOf: (text: string) => string | null,
): void {
  const seen = new Set<string>();
  for (const [index, text] of listOf(requests[axis]).entries()) {
    const fault = seen.has(text) ? 'it comes twice' : faultOf(text);
    seen.add(text);
    if (fault === null) continue;
    throw new FixtureFault(
      placeOfEntry(document, ['requests', axis], requests[axis], index),
      `${axis} "${text}": ${fault}.`,
    );
  }
}

/** Where an entry stands of what may be written alone or as a list. */
export const placeOfEntry = (
  document: SourceDocument,
  at: Path,
  written: string | readonly string[] | undefined,
  index: number,
) => document.placeOf(typeof written === 'string' ? at : [...at, index]);

/** Every combination. */
export function crossRequests(axes: Readonly<Record<Axis, readonly string[]>>, given: Given): FixtureRequest[] {
  const requests: FixtureRequest[] = [];
  for (const action of axes.action.filter(isAction)) {
    for (const key of axes.key) {
      for (const model of axes.model) {
        for (const provider of axes.provider) {
          const candidates = candidatesOf(given, action, provider === 'any' ? model : `${provider}/${model}`);
          for (const address of axes.address) {
            const labels = { action, key, model, provider, address };
            requests.push({ labels, action, clientIp: addressOf(given, address) ?? null, candidates });
          }
        }
      }
    }
  }
  return requests;
}

/** The steps of the gateway: the catalogue knows the names, then credentials count. */
function candidatesOf({ catalog, hasCredential }: Given, action: FixtureAction, name: string): Mapping[] {
  const callable = (mappings: readonly Mapping[]) => mappings.filter(({ providerId }) => hasCredential(providerId));
  if (action === 'list') return callable(activeMappings({ catalog }));
  if (action !== 'chat' || name !== AUTO) return callable(catalog.resolve(name) ?? []);
  return choicesFor({ model: AUTO, messages: [] }, callable(catalog.mappings()), systemClock.now());
}

/** Null: unknown. Undefined: the text means no address. */
function addressOf({ addresses }: Given, text: string): string | null | undefined {
  if (text === 'unknown') return null;
  return addresses.has(text) ? addresses.get(text) : (canonicalAddress(text) ?? undefined);
}

import { isRecord } from './json.ts';
import { badResponse } from './upstream-error.ts';

type Fields = Record<string, unknown>;

/** More tool calls than any model makes in one message. */
const MAX_CALLS = 1024;

/** A tool call of which a stream has shown the first fragment. */
interface BegunCall {
  /** The upstream's own `index`; undefined where it gives none. */
  readonly wire: number | undefined;
  readonly id: string | undefined;
  readonly name: string | undefined;
}

/** The tool calls of one choice of a stream, in the order in which they began. */
export type BegunCalls = BegunCall[];

const filled = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

/** Brings a whole tool call into OpenAI's form, in place: some providers leave the type out or send arguments as an object. */
export function normaliseToolCall(call: Fields): void {
  const { function: called } = call;
  if (!isRecord(called)) return;
  call.type ??= 'function';
  if (isRecord(called.arguments)) called.arguments = JSON.stringify(called.arguments);
}

/**
 * Brings a fragment into OpenAI's form, in place: `index` numbers the calls in the order in which they begin, whatever the
 * upstream numbers; id, type and name stand in the first fragment only. @throws UpstreamError `bad_response`
 */
export function normaliseFragment(fragment: Fields, begun: BegunCalls): void {
  const { function: called } = fragment;
  const wire = typeof fragment.index === 'number' ? fragment.index : undefined;
  const id = filled(fragment.id);
  const name = isRecord(called) ? filled(called.name) : undefined;
  const place = placeOf({ wire, id, name }, begun);
  if (fragment.index !== place) fragment.index = place;
  if (isRecord(called) && isRecord(called.arguments)) called.arguments = JSON.stringify(called.arguments);
  if (place === begun.length) {
    if (place === MAX_CALLS) throw badResponse('The provider sent too many tool calls.');
    begun.push({ wire, id, name });
    return;
  }
  if (fragment.id !== undefined) delete fragment.id;
  if (fragment.type !== undefined) delete fragment.type;
  if (isRecord(called) && called.name !== undefined) delete called.name;
}

/** Which call a fragment belongs to; the number of calls so far when it begins another. */
function placeOf({ wire, id, name }: BegunCall, begun: BegunCalls): number {
  const place = begun.findLastIndex((call) => call.wire === wire);
  const latest = begun[place];
  if (latest === undefined) return begun.length;
  // Only what is named can be new: ids that change from fragment to fragment are seen in the wild.
  if (name === undefined || (id !== undefined && id === latest.id)) return place;
  if (id === undefined || latest.id === undefined) return wire === undefined ? begun.length : place;
  const known = begun.findLastIndex((call) => call.id === id);
  return known === -1 ? begun.length : known;
}

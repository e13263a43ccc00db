import { hash } from 'node:crypto';
import { isRecord } from '../wire/json.ts';
import { badResponse } from '../wire/upstream-error.ts';

type Fields = Record<string, unknown>;

/** More tool calls than any model makes in one message. */
const MAX_CALLS = 1024;

/** An id that is longer is remembered by its hash: thoughts are hidden in some. */
const LONG_ID = 128;

/** What a fragment says of the tool call that it belongs to. */
interface NamedCall {
  /** The upstream's own `index`; undefined where it gives none. */
  readonly wire: number | undefined;
  readonly id: string | undefined;
  readonly name: string | undefined;
}

/** The tool calls of one choice of a stream, in the order in which they began. Which one is meant is found without a search. */
export class BegunCalls {
  readonly #ids: (string | undefined)[] = [];
  readonly #latestOfWire = new Map<number | undefined, number>();
  readonly #latestOfId = new Map<string, number>();

  get length(): number {
    return this.#ids.length;
  }

  begin({ wire, id }: NamedCall): void {
    const place = this.#ids.push(id) - 1;
    this.#latestOfWire.set(wire, place);
    if (id !== undefined) this.#latestOfId.set(id, place);
  }

  /** Which call a fragment belongs to; the number of calls so far when it begins another. */
  placeOf({ wire, id, name }: NamedCall): number {
    const place = this.#latestOfWire.get(wire);
    if (place === undefined) return this.length;
    const latestId = this.#ids[place];
    // Only what is named can be new: ids that change from fragment to fragment are seen in the wild.
    if (name === undefined || (id !== undefined && id === latestId)) return place;
    if (id === undefined || latestId === undefined) return wire === undefined ? this.length : place;
    return this.#latestOfId.get(id) ?? this.length;
  }
}

/** @param count of a message or a delta, or of all choices of a stream so far. @throws UpstreamError `bad_response` */
export function boundCalls(count: number): void {
  if (count > MAX_CALLS) throw badResponse('The provider sent too many tool calls.');
}

/** The tool calls of a message or a delta that are objects. @throws UpstreamError `bad_response` */
export function toolCalls({ tool_calls: calls }: Fields): Fields[] {
  if (!Array.isArray(calls)) return [];
  boundCalls(calls.length);
  return calls.filter(isRecord);
}

const filled = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

const shortened = (id: string | undefined): string | undefined =>
  id !== undefined && id.length > LONG_ID ? hash('sha256', id) : id;

/**
 * Brings a whole tool call into OpenAI's form, in place: some providers leave the type out, or state another, or send arguments
 * as an object.
 */
export function normaliseToolCall(call: Fields): void {
  const { function: called } = call;
  if (!isRecord(called)) return;
  call.type = 'function';
  if (isRecord(called.arguments)) called.arguments = JSON.stringify(called.arguments);
}

/**
 * Brings a fragment into OpenAI's form, in place: `index` numbers the calls in the order in which they begin, whatever the
 * upstream numbers; id, type and name stand in the first fragment only. @throws UpstreamError `bad_response`
 */
export function normaliseFragment(fragment: Fields, begun: BegunCalls): void {
  const { function: called } = fragment;
  const wire = typeof fragment.index === 'number' ? fragment.index : undefined;
  const id = shortened(filled(fragment.id));
  const name = isRecord(called) ? filled(called.name) : undefined;
  const place = begun.placeOf({ wire, id, name });
  if (fragment.index !== place) fragment.index = place;
  if (isRecord(called) && isRecord(called.arguments)) called.arguments = JSON.stringify(called.arguments);
  if (place === begun.length) {
    begun.begin({ wire, id, name });
    if (isRecord(called) && fragment.type !== 'function') fragment.type = 'function';
    return;
  }
  if (fragment.id !== undefined) delete fragment.id;
  if (fragment.type !== undefined) delete fragment.type;
  if (isRecord(called) && called.name !== undefined) delete called.name;
}

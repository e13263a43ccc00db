import { timeOfId } from '../../domain/id.ts';

/** Rows of calls are numbered by the milliseconds in the calls' ids, so many to each: a JS number holds that until the year 2109. */
const PER_MS = 2048;
const DAY_MS = 86_400_000;

/** Where the numbers of calls that were made at or after a time begin, and those of earlier ones end; `time` in epoch ms. */
export const numbersFrom = (time: number): number => Math.max(0, time) * PER_MS;

/** The number of a call, decision or request of this id is not below: others of its millisecond, or a clock that went back, are before it. */
export const earliestNumber = (id: string): number => numbersFrom(timeOfId(id));

/** A call is recorded within so many milliseconds of the time in its id, unless the clock went back while no server ran. */
const NEAR_MS = 60_000;

/** Where the numbers end among which the call of this id stands, unless it is displaced. */
export const endOfNear = (id: string): number => numbersFrom(timeOfId(id) + NEAR_MS);

/** When an id was made, by its bytes, in epoch ms. */
const timeOfBytes = (id: Buffer): number => id.readUIntBE(0, 6);

interface Numbered {
  readonly number: number;
  readonly id: Buffer;
  /** Where it is not that of the call. */
  readonly decisionId: Buffer | null;
}

/** Whether a call stands far behind the time in its id: after the clock went back, rows still follow the last one. */
export const isDisplaced = ({ number, id, decisionId }: Numbered): boolean =>
  [id, decisionId ?? id].some((each) => number >= numbersFrom(timeOfBytes(each) + NEAR_MS));

/** When the call of this number was made, in epoch ms. */
export const timeOfNumber = (number: number): number => Math.floor(number / PER_MS);

/** The UTC day on which it was made, counted from 1970. */
export const dayOfNumber = (number: number): number => Math.floor(number / (PER_MS * DAY_MS));

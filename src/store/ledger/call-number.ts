import { timeOfId } from '../../domain/id.ts';

/** Rows of calls are numbered by the milliseconds in the calls' ids, so many to each: a JS number holds that until the year 2109. */
const PER_MS = 2048;
const DAY_MS = 86_400_000;

/** Where the numbers of calls that were made at or after a time begin, and those of earlier ones end; `time` in epoch ms. */
export const numbersFrom = (time: number): number => Math.max(0, time) * PER_MS;

/** The number of a call, decision or request of this id is not below: others of its millisecond, or a clock that went back, are before it. */
export const earliestNumber = (id: string): number => numbersFrom(timeOfId(id));

/** When the call of this number was made, in epoch ms. */
export const timeOfNumber = (number: number): number => Math.floor(number / PER_MS);

/** The UTC day on which it was made, counted from 1970. */
export const dayOfNumber = (number: number): number => Math.floor(number / (PER_MS * DAY_MS));

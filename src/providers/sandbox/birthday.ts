/** Answers are the same whenever they are asked for, so they bear the birthday of the sandbox, in seconds since 1970. */
export const CREATED = Date.UTC(2026, 10, 21) / 1000;

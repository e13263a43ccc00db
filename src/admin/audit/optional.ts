/** Shows a value that may be missing: null where it is. */
export const optional = <T, U>(value: T | null | undefined, show: (value: T) => U): U | null =>
  value === null || value === undefined ? null : show(value);

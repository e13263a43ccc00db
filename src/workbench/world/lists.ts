/** A value that may be written alone or as a list. */
export const listOf = (written: string | readonly string[] | undefined): readonly string[] =>
  written === undefined ? [] : typeof written === 'string' ? [written] : written;

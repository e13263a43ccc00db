/** Lines of aligned columns: the first to the left, the others to the right. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length);
  }
  const pad = (cell: string, column: number): string => {
    const width = widths[column] ?? 0;
    return column === 0 ? cell.padEnd(width) : cell.padStart(width);
  };
  return rows.map((row) => row.map(pad).join('  ').trimEnd()).join('\n');
}

/** A figure with so many decimals, or a dash where there is none. */
export const cell = (value: number, decimals = 0): string => (Number.isFinite(value) ? value.toFixed(decimals) : '-');

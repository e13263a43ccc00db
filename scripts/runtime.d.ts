export const root: string;
export const cliCommand: { readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> };
export function pinnedNode(): string | undefined;
export function findNode(): string;
export function commandOf(packageName: string, command: string): string;

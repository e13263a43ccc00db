import { SECRET_PREFIX } from '../../domain/secret.ts';
import { UsageError } from './usage-error.ts';

/** A secret that Portcullis made, wherever it stands in an argument. */
const OWN_SECRET = new RegExp(`(?<![0-9A-Za-z])(?:${Object.values(SECRET_PREFIX).join('|')})[0-9A-Za-z]{46}`);

/** Refuses a command line that holds a key or a token, whatever it was meant for. @throws UsageError that does not repeat it */
export function refuseSecrets(args: readonly string[]): void {
  if (!args.some((argument) => OWN_SECRET.test(argument))) return;
  throw new UsageError(
    'An argument holds a secret, and everyone on this machine can see those. Name a key by its id, masked token or description; ' +
      'give the token of an invitation by `portcullis members accept --token-stdin < file` or --token-env <name>. ' +
      'Replace the secret if others use this machine.',
  );
}

/** What commander says of a faulty command line, without the values of arguments: any of them may be a secret. */
export const withoutValues = (text: string): string =>
  text
    .split("'")
    .map((part) => (part.startsWith('--') ? part.split('=', 1).join('') : part))
    .join("'")
    .replace(/(but got \d+): [\s\S]*$/, '$1.');

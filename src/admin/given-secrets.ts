import type { Config } from '../config.ts';
import type { GivenSecrets } from '../store/secrets.ts';

/** The secrets that the environment gives, as the store takes them: the server and the command line must hash alike. */
export function givenSecrets({ secrets: { pepper, encryptionKey } }: Pick<Config, 'secrets'>): GivenSecrets {
  return {
    ...(pepper === undefined ? {} : { peppers: [pepper.toString('base64url')] }),
    ...(encryptionKey === undefined ? {} : { encryptionKey: encryptionKey.toString('base64url') }),
  };
}

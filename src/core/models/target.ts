import type { Mapping } from '../../domain/model.ts';
import type { Credential, Provider } from '../../providers/providers.ts';

/** Where one attempt goes. */
export interface Target {
  readonly mapping: Mapping;
  readonly provider: Provider;
  readonly credential: Credential;
}

import type { Mapping } from '../domain/model.ts';
import type { WireFormat } from '../domain/provider.ts';

/** Someone who serves models, as far as the catalogue knows it. */
export interface CatalogProvider {
  readonly id: string;
  readonly name: string;
  /** Whether it trains on API data; absent when unknown. */
  readonly trainsOnData?: boolean;
  /** How it is spoken to; absent for the sandbox and for upstreams of the environment. */
  readonly wire?: WireFormat;
  /** Public address of its API, without a final slash; absent like `wire`. */
  readonly baseUrl?: string;
}

/** A model and all its providers. */
export interface CatalogModel {
  /** Canonical id. */
  readonly id: string;
  readonly name: string;
  readonly aliases: readonly string[];
  readonly description: string;
  /** Who made it. */
  readonly family: string;
  /** Epoch seconds; 0 when not known. */
  readonly created: number;
  readonly tokenizer?: string;
  /** Whether its provider moderates; absent when unknown. */
  readonly moderated?: boolean;
  /** At least one; a deactivated one stays here. */
  readonly mappings: readonly Mapping[];
}

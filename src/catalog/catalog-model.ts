import type { Mapping } from '../domain/model.ts';

/** Somebody who serves models, as far as the catalogue knows it. */
export interface CatalogProvider {
  readonly id: string;
  readonly name: string;
  /** Whether it trains on API data; absent when unknown. */
  readonly trainsOnData?: boolean;
}

/** A model and everybody who serves it. */
export interface CatalogModel {
  /** Canonical id. */
  readonly id: string;
  readonly name: string;
  readonly aliases: readonly string[];
  readonly description: string;
  readonly family: string;
  /** Epoch seconds. */
  readonly created: number;
  readonly tokenizer?: string;
  /** Whether its provider moderates; absent when unknown. */
  readonly moderated?: boolean;
  /** At least one; a deactivated one stays here. */
  readonly mappings: readonly Mapping[];
}

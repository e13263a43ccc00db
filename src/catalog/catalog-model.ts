import type { Mapping } from '../domain/model.ts';

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

import type { Mapping } from './model.ts';
import type { SealedSecret } from './sealed-secret.ts';

/** How a provider is spoken to: the adapters are named so. */
export const WIRE_FORMATS = ['openai', 'anthropic', 'google'] as const;
export type WireFormat = (typeof WIRE_FORMATS)[number];

/** Id of the built-in provider that stands in for a real one. */
export const SANDBOX = 'sandbox';

/** A provider that an organization has added. */
export interface CustomProvider {
  /** `prov_…` */
  readonly id: string;
  /** By which requests and rules mean it; unique in its organization. */
  readonly name: string;
  readonly wire: WireFormat;
  readonly baseUrl: string;
  /** It asks for no credential: it can be called without a provider key. */
  readonly keyless: boolean;
  /** Request fields that it takes beyond those of its wire format. */
  readonly fields: readonly string[];
}

/** A customer's own credential for a provider, as it is stored. */
export interface SealedProviderKey {
  readonly id: string;
  readonly label: string;
  /** Id of a catalogue provider, or `custom:<name>`. */
  readonly provider: string;
  /** Null: for all projects of the organization. */
  readonly projectId: string | null;
  /** Another address than the provider's own, or null. */
  readonly baseUrl: string | null;
  readonly secret: SealedSecret;
}

/** Tags that an organization has put on a model or a provider. */
export interface TagSet {
  /** A name of a model, bare or behind its provider, or `<provider>/*`. */
  readonly target: string;
  readonly tags: readonly string[];
}

/** A name of an organization's or a project's own for an ordered list of models. */
export interface Alias {
  /** `alias_…` */
  readonly id: string;
  /** Null: for all projects of the organization. */
  readonly projectId: string | null;
  /** A request's `model`; without `/`. */
  readonly name: string;
  /** Names of models, none of which is an alias, in the order in which they are tried; at least one. */
  readonly models: readonly string[];
  /** One for each model, by which the first choice of a call is drawn; null: the first model comes first. */
  readonly weights: readonly number[] | null;
  /** Epoch ms. */
  readonly createdAt: number;
}

/** An organization's own providers, models, keys, tags and aliases. Immutable: another object whenever any of it may have changed. */
export interface OrganizationProviders {
  readonly providers: readonly CustomProvider[];
  /** Mappings of its custom models, with `custom: true`, ids `<name>/<model>`. By id. */
  readonly mappings: readonly Mapping[];
  /** Active ones, in the order in which they are tried. */
  readonly keys: readonly SealedProviderKey[];
  readonly tagSets: readonly TagSet[];
  readonly aliases: readonly Alias[];
}

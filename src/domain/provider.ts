import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { Mapping } from './model.ts';

/** Protocols of providers: the adapters have these names. */
export const WIRE_FORMATS = ['openai', 'anthropic', 'google'] as const;
export type WireFormat = (typeof WIRE_FORMATS)[number];

/** Id of the built-in provider that stands in for a real one. */
export const SANDBOX = 'sandbox';

/** A provider that an organization has added. */
export interface CustomProvider {
  /** `prov_…` */
  readonly id: string;
  /** Name by which requests and rules refer to it; unique in its organization. */
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

/** A secret encrypted with AES-256-GCM under the server's encryption key (src/domain/README.md, "stored secrets"). */
interface SealedSecret {
  /** Which key it was sealed with. */
  readonly keyId: string;
  /** Nonce (12 bytes), ciphertext, tag (16 bytes), in base64. */
  readonly ciphertext: string;
}

/** An encryption key: 32 bytes, and the id that is stored next to what it seals. */
export interface EncryptionKey {
  readonly id: string;
  readonly key: Buffer;
}

/** Shortest secret of which eight characters may be shown without giving away a good part of it. */
const SHOWABLE_LENGTH = 20;

/** Part of a provider's secret that may be shown later: `sk-p…wxyz`; nothing of a short one. */
export const maskCredential = (secret: string): string =>
  secret.length < SHOWABLE_LENGTH ? '…' : `${secret.slice(0, 4)}…${secret.slice(-4)}`;

const NONCE_BYTES = 12;
const AUTH_TAG_BYTES = 16;

/** @param owner id of the row that holds the secret: it is authenticated, so that a ciphertext cannot be moved to another row */
export function sealSecret(secret: string, owner: string, { id, key }: EncryptionKey): SealedSecret {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(owner));
  const parts = [nonce, cipher.update(secret, 'utf8'), cipher.final(), cipher.getAuthTag()];
  return { keyId: id, ciphertext: Buffer.concat(parts).toString('base64') };
}

/** @throws Error when it was sealed with none of the keys, for another row, or was altered */
export function openSecret(sealed: SealedSecret, owner: string, ...keys: readonly EncryptionKey[]): string {
  const key = keys.find(({ id }) => id === sealed.keyId)?.key;
  if (key === undefined) throw new Error(`The secret of ${owner} is sealed with another encryption key.`);
  const bytes = Buffer.from(sealed.ciphertext, 'base64');
  if (bytes.length < NONCE_BYTES + AUTH_TAG_BYTES) throw new Error(`The sealed secret of ${owner} is damaged.`);
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES))
    .setAAD(Buffer.from(owner))
    .setAuthTag(bytes.subarray(-AUTH_TAG_BYTES));
  const text = decipher.update(bytes.subarray(NONCE_BYTES, -AUTH_TAG_BYTES));
  return Buffer.concat([text, decipher.final()]).toString('utf8');
}

/** Form of a tag, for the answer to a wrong one. */
export const TAG_SHAPE = 'must be a word or `name:value`, of small letters, digits and _ . -';

/** As they are stored. */
export const sortedTags = (tags: readonly string[]): string[] => [...new Set(tags)].sort();

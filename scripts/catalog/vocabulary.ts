// The words of the data files, as schemas/catalog/catalog-file.json has them.
import schema from '../../schemas/catalog/catalog-file.json' with { type: 'json' };
import type { CatalogPrices } from '../../src/generated/types.ts';
import { validator } from '../../src/lib/schemas.ts';

const validateCatalogCapability = validator('CatalogCapability');
const validateCatalogEffort = validator('CatalogEffort');
const validateCatalogModality = validator('CatalogModality');
const validateCatalogStability = validator('CatalogStability');

const { capability, effort, modality, prices, stability } = schema.$defs;

export const CAPABILITIES = capability.enum.filter(validateCatalogCapability);
export const REASONING_EFFORTS = effort.enum.filter(validateCatalogEffort);
export const MODALITIES = modality.enum.filter(validateCatalogModality);
export const STABILITIES = stability.enum.filter(validateCatalogStability);

/** Every price that a data file may state. */
export type PriceName = keyof CatalogPrices;

const isPriceName = (name: string): name is PriceName => Object.hasOwn(prices.properties, name);

export const PRICE_NAMES = Object.keys(prices.properties).filter(isPriceName);

import type { Catalog } from '../catalog/catalog.ts';
import { coversMappedBlock, parseRange, type TrustedProxies } from '../domain/client-ip.ts';
import type { CanonicalRule } from '../domain/rule-content.ts';
import type { CustomNames } from '../store/custom-names.ts';

/** What is known of the world in which a rule will be judged. */
export interface RuleWorld {
  readonly catalog: Pick<Catalog, 'resolve' | 'mappings' | 'providers'>;
  /** Undefined: `TRUSTED_PROXIES` is unset. */
  readonly trustedProxies: TrustedProxies | undefined;
}

/** What is accepted but may not mean what was meant (decisions.md, section 4, "Writing a rule"). */
export function ruleWarnings({ ruleValue }: CanonicalRule, world: RuleWorld, custom: CustomNames): string[] {
  const { catalog, trustedProxies } = world;
  if ('models' in ruleValue) return ruleValue.models.flatMap((entry) => modelWarnings(entry, catalog, custom));
  if ('providers' in ruleValue) return ruleValue.providers.flatMap((entry) => providerWarnings(entry, catalog, custom));
  if ('ipCidrs' in ruleValue) return ipWarnings(ruleValue.ipCidrs, trustedProxies);
  return [];
}

function modelWarnings(entry: string, catalog: RuleWorld['catalog'], { models }: CustomNames): string[] {
  if (!entry.endsWith('*')) {
    const isKnown = catalog.resolve(entry) !== undefined || models.includes(entry);
    return isKnown ? [] : [`"${entry}" is not the name of a model in the catalogue.`];
  }
  const prefix = entry.slice(0, -1);
  const matches = (name: string): boolean => name.startsWith(prefix);
  if (models.some(matches) || catalog.mappings().some(({ names }) => names.some(matches))) return [];
  return [`No name of a model in the catalogue begins with "${prefix}".`];
}

function providerWarnings(entry: string, catalog: RuleWorld['catalog'], { providers }: CustomNames): string[] {
  if (entry === 'custom' || catalog.providers().some(({ id }) => id === entry)) return [];
  if (entry.startsWith('custom:')) {
    const isKnown = providers.some((name) => entry === `custom:${name}`);
    return isKnown ? [] : [`"${entry}" is not a custom provider of the organization.`];
  }
  return [`"${entry}" is not a provider in the catalogue; a custom provider is written "custom:${entry}".`];
}

function ipWarnings(ranges: readonly string[], trustedProxies: RuleWorld['trustedProxies']): string[] {
  const wide = ranges.filter((range) => coversMappedBlock(parseRange(range)));
  const warnings = wide.map((range) => `"${range}" holds IPv6 addresses only; IPv4 clients need a range of their own.`);
  if (trustedProxies !== undefined) return warnings;
  return [
    ...warnings,
    'TRUSTED_PROXIES is not set: the client address is whatever X-Forwarded-For says, and may be forged or missing.',
  ];
}

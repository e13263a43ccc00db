import { coversMappedBlock, parseRange, type TrustedProxies } from '../../domain/client-ip.ts';
import { byList, type CanonicalRule } from '../../domain/iam-rule.ts';
import type { KnownNames } from './known-names.ts';

/** What is accepted but may not mean what was meant (policy/README.md, "Writing a rule"). @param trustedProxies undefined: unset */
export function ruleWarnings(
  rule: CanonicalRule,
  known: KnownNames,
  trustedProxies: TrustedProxies | undefined,
): string[] {
  const names = (): string[] => nameWarnings(rule, known);
  return byList(
    rule,
    { models: names, providers: names, ip_cidrs: (ranges) => ipWarnings(ranges, trustedProxies), tags: names },
    [],
  );
}

/** A sentence for each entry that means no model, no provider or no tag, with the nearest name where one is near. */
export const nameWarnings = (rule: CanonicalRule, known: KnownNames): string[] =>
  byList<string[]>(
    rule,
    {
      models: (models) => models.flatMap((entry) => modelWarning(entry, known) ?? []),
      providers: (providers) =>
        providers
          .filter((entry) => entry !== 'custom' && !known.hasProvider(entry))
          .map((entry) => providerWarning(entry, known.nearestProvider(entry))),
      ip_cidrs: () => [],
      tags: (tags) => tags.filter((entry) => !known.hasTag(entry)).map((entry) => tagWarning(entry, known)),
    },
    [],
  );

/** The end of a sentence about a name that nothing has. */
export const didYouMean = (nearest: string | undefined): string =>
  nearest === undefined ? '.' : `; did you mean \`${nearest}\`?`;

function modelWarning(entry: string, known: KnownNames): string | undefined {
  if (known.isAlias(entry)) return aliasWarning(entry, known.hasModel(entry));
  if (known.hasModel(entry)) return undefined;
  const end = didYouMean(known.nearestModel(entry));
  return entry.endsWith('*')
    ? `No name of a model in the catalogue begins with "${entry.slice(0, -1)}"${end}`
    : `"${entry}" is not the name of a model in the catalogue${end}`;
}

/** Rules judge the models of an alias, never the alias. `*` and other prefixes that mean models too are meant so. */
function aliasWarning(entry: string, hasModel: boolean): string | undefined {
  if (entry.endsWith('*')) {
    return hasModel
      ? undefined
      : `"${entry}" begins the name of an alias only; rules judge the models of an alias, so it matches nothing: name the models.`;
  }
  return hasModel
    ? `"${entry}" is also an alias; the rule judges the model of that name, not the alias, which may mean other models.`
    : `"${entry}" is an alias; rules judge the models of an alias, so it matches nothing: name the models.`;
}

function providerWarning(entry: string, nearest: string | undefined): string {
  if (entry.startsWith('custom:')) {
    return `"${entry}" is not a custom provider of the organization${didYouMean(nearest)}`;
  }
  const end = nearest === undefined ? `; a custom provider is written "custom:${entry}".` : didYouMean(nearest);
  return `"${entry}" is not a provider in the catalogue${end}`;
}

function tagWarning(entry: string, known: KnownNames): string {
  const end = didYouMean(known.nearestTag(entry));
  return entry.endsWith('*')
    ? `No model has a tag that begins with "${entry.slice(0, -1)}"${end}`
    : `No model has the tag "${entry}"${end}`;
}

function ipWarnings(ranges: readonly string[], trustedProxies: TrustedProxies | undefined): string[] {
  const wide = ranges.filter((range) => coversMappedBlock(parseRange(range)));
  const warnings = wide.map((range) => `"${range}" holds IPv6 addresses only; IPv4 clients need a range of their own.`);
  if (trustedProxies !== undefined) return warnings;
  return [
    ...warnings,
    'TRUSTED_PROXIES is not set: the client address is whatever X-Forwarded-For says, so a caller can forge it, and callers without that header, such as those that connect directly, have none and are denied. Set it to the ranges of your proxies, or to `none` where callers connect directly.',
  ];
}

import type { Catalog } from '../../catalog/catalog.ts';
import { didYouMean, type KnownNames } from '../../core/known-names.ts';
import { parseRange } from '../../domain/address.ts';
import { byList, entriesOf } from '../../domain/iam-rule.ts';
import type { Mapping } from '../../domain/model.ts';
import type { LintFinding } from '../../generated/types.ts';
import { intervalOf } from '../world/address-classes.ts';
import type { WorldRule, WorldSubject } from '../world/world.ts';
import { finding } from './lint-finding.ts';

/** What entries of rules can mean. */
export interface LintedNames {
  readonly catalog: Catalog;
  /** Of custom models. */
  readonly custom: readonly Mapping[];
  /** Of mappings, in the catalogue and custom. */
  readonly known: KnownNames;
}

/** Entries of rules, in either mode, that neither the catalogue nor a custom model has, or that are served no more. */
export function entryFindings({ catalog, custom, known }: LintedNames, subject: WorldSubject): LintFinding[] {
  const mappings = [...catalog.mappings(), ...custom];
  const isServed = ({ id, custom: isCustom }: Mapping): boolean => isCustom || catalog.resolve(id)?.length === 1;
  return subject.rules.flatMap((rule) =>
    byList<LintFinding[]>(
      rule,
      {
        models: (models) =>
          models.flatMap((entry) =>
            known.hasModel(entry)
              ? deactivatedFinding(mappings, isServed, subject, rule, entry)
              : [unknownModel(known, subject, rule, entry)],
          ),
        providers: (providers) =>
          providers
            .filter((entry) => !known.hasProvider(entry))
            .map((entry) => unknownProvider(known, subject, rule, entry)),
        ip_cidrs: () => [],
        tags: (tags) =>
          tags.filter((entry) => !known.hasTag(entry)).map((entry) => unknownTag(known, subject, rule, entry)),
      },
      [],
    ),
  );
}

function unknownProvider(known: KnownNames, subject: WorldSubject, rule: WorldRule, entry: string): LintFinding {
  const message = `: "${entry}" is not a provider that serves a model${didYouMean(known.nearestProvider(entry))}`;
  return finding('unknown-provider', subject, [rule], message);
}

function unknownTag(known: KnownNames, subject: WorldSubject, rule: WorldRule, entry: string): LintFinding {
  const message = entry.endsWith('*') ? 'begins no tag' : 'is not a tag';
  const end = didYouMean(known.nearestTag(entry));
  return finding('unknown-tag', subject, [rule], `: "${entry}" ${message} that a model has${end}`);
}

function unknownModel(known: KnownNames, subject: WorldSubject, rule: WorldRule, entry: string): LintFinding {
  if (known.isAlias(entry)) {
    const name = entry.endsWith('*') ? 'begins the name of an alias only' : 'is an alias';
    return finding(
      'unknown-model',
      subject,
      [rule],
      `: "${entry}" ${name}; rules judge models, so it matches nothing.`,
    );
  }
  const message = entry.endsWith('*') ? 'begins no name of a model' : 'is not the name of a model';
  const end = didYouMean(known.nearestModel(entry));
  return finding('unknown-model', subject, [rule], `: "${entry}" ${message} in the catalogue${end}`);
}

function deactivatedFinding(
  mappings: readonly Mapping[],
  isServed: (mapping: Mapping) => boolean,
  subject: WorldSubject,
  rule: WorldRule,
  entry: string,
): LintFinding[] {
  const prefix = entry.endsWith('*') ? entry.slice(0, -1) : undefined;
  const isMeant = (name: string): boolean => (prefix === undefined ? name === entry : name.startsWith(prefix));
  if (mappings.some((mapping) => mapping.names.some(isMeant) && isServed(mapping))) return [];
  return [finding('deactivated-model', subject, [rule], `: "${entry}" means models that are deactivated.`)];
}

interface Listed {
  readonly rule: WorldRule;
  readonly range: string;
}

/** Ranges of one subject and effect that lie in others, or that two rules list: they say what another one says already. */
export function rangeFindings(subject: WorldSubject): LintFinding[] {
  return (['allow_ip_cidrs', 'deny_ip_cidrs'] as const).flatMap((type) => {
    const listed = subject.rules.flatMap((rule): Listed[] =>
      rule.ruleType === type && rule.mode === 'enforce' ? entriesOf(rule).map((range) => ({ rule, range })) : [],
    );
    return listed.flatMap((inner, index) => {
      const outer = listed.find((other, at) => at !== index && covers(other.range, inner.range, at < index));
      if (outer === undefined) return [];
      const rules = inner.rule.id === outer.rule.id ? [inner.rule] : [inner.rule, outer.rule];
      const message =
        inner.range === outer.range ? ` both list ${inner.range}.` : `: ${inner.range} lies in ${outer.range}.`;
      return [finding('overlapping-ranges', subject, rules, message)];
    });
  });
}

/** Of two equal ranges, which are of two rules, only the first covers the other. */
function covers(outerText: string, innerText: string, first: boolean): boolean {
  if (outerText === innerText) return first;
  const [outer, inner] = [parseRange(outerText), parseRange(innerText)];
  const [wide, narrow] = [intervalOf(outer), intervalOf(inner)];
  return outer.family === inner.family && wide.first <= narrow.first && narrow.last <= wide.last;
}

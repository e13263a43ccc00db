import type { Catalog } from '../catalog/catalog.ts';
import { parseRange } from '../domain/client-ip.ts';
import type { Mapping } from '../domain/model.ts';
import type { LintFinding } from '../generated/types.ts';
import { intervalOf } from './address-classes.ts';
import { finding } from './lint-finding.ts';
import type { WorldRule, WorldSubject } from './world.ts';

/** Entries of rules, in either mode, that neither the catalogue nor a custom model has, or that are served no more. */
export function entryFindings(catalog: Catalog, custom: readonly Mapping[], subject: WorldSubject): LintFinding[] {
  const known = [...catalog.mappings(), ...custom];
  const isServed = ({ id, custom: isCustom }: Mapping): boolean => isCustom || catalog.resolve(id)?.length === 1;
  return subject.rules.flatMap((rule) => {
    if ('models' in rule.ruleValue) {
      return rule.ruleValue.models.flatMap((entry) => modelFinding(known, isServed, subject, rule, entry));
    }
    if (!('providers' in rule.ruleValue)) return [];
    const unknown = rule.ruleValue.providers.filter(
      (entry) => !known.some(({ providerNames }) => providerNames.includes(entry)),
    );
    return unknown.map((entry) =>
      finding('unknown-provider', subject, [rule], `"${entry}" is not a provider that serves a model.`),
    );
  });
}

function modelFinding(
  known: readonly Mapping[],
  isServed: (mapping: Mapping) => boolean,
  subject: WorldSubject,
  rule: WorldRule,
  entry: string,
): LintFinding[] {
  const prefix = entry.endsWith('*') ? entry.slice(0, -1) : undefined;
  const isMeant = (name: string): boolean => (prefix === undefined ? name === entry : name.startsWith(prefix));
  const meant = known.filter(({ names }) => names.some(isMeant));
  if (meant.length === 0) {
    const message = prefix === undefined ? 'is not the name of a model' : 'begins no name of a model';
    return [finding('unknown-model', subject, [rule], `"${entry}" ${message} in the catalogue.`)];
  }
  if (meant.some(isServed)) return [];
  return [finding('deactivated-model', subject, [rule], `"${entry}" means models that are deactivated.`)];
}

interface Listed {
  readonly rule: WorldRule;
  readonly range: string;
}

/** Ranges of one subject and effect that lie in others, which say the same already. */
export function rangeFindings(subject: WorldSubject): LintFinding[] {
  return (['allow_ip_cidrs', 'deny_ip_cidrs'] as const).flatMap((type) => {
    const listed = subject.rules.flatMap((rule): Listed[] =>
      rule.ruleType === type && rule.mode === 'enforce' && 'ipCidrs' in rule.ruleValue
        ? rule.ruleValue.ipCidrs.map((range) => ({ rule, range }))
        : [],
    );
    return listed.flatMap((inner, index) => {
      const outer = listed.find((other, at) => at !== index && covers(other.range, inner.range, at < index));
      if (outer === undefined) return [];
      const rules = inner.rule.id === outer.rule.id ? [inner.rule] : [inner.rule, outer.rule];
      return [finding('overlapping-ranges', subject, rules, `${inner.range} lies in ${outer.range}.`)];
    });
  });
}

/** Of two equal ranges only the first covers the other. */
function covers(outerText: string, innerText: string, first: boolean): boolean {
  if (outerText === innerText) return first;
  const [outer, inner] = [parseRange(outerText), parseRange(innerText)];
  const [wide, narrow] = [intervalOf(outer), intervalOf(inner)];
  return outer.family === inner.family && wide.first <= narrow.first && narrow.last <= wide.last;
}

import type { OrganizationProviders } from '../../src/domain/provider.ts';
import { canonicalRule } from '../../src/domain/rule-content.ts';
import type { RuleCreate } from '../../src/generated/types.ts';
import type { World, WorldRule } from '../../src/workbench/world/world.ts';
import { catalog } from './worlds.ts';

/** A rule with an id, for tests that vary one thing. */
export const rule = (
  id: string,
  ruleType: RuleCreate['ruleType'],
  ruleValue: RuleCreate['ruleValue'],
  mode: WorldRule['mode'] = 'enforce',
): WorldRule => ({ ...canonicalRule({ ruleType, ruleValue }), id, mode, description: null });

export interface SmallRules {
  readonly organization?: readonly WorldRule[];
  readonly group?: readonly WorldRule[];
  readonly member?: readonly WorldRule[];
  readonly key?: readonly WorldRule[];
}

/** Null: of a document. */
export interface SmallCredentials {
  readonly providers?: OrganizationProviders | null;
  /** The providers that the operator has a credential for; default: all. */
  readonly served?: readonly string[];
}

export const NO_PROVIDERS: OrganizationProviders = { providers: [], mappings: [], keys: [], tagSets: [], aliases: [] };

/** One organization, one member, one key, and a group with the member. */
export const smallWorld = (
  { organization = [], group = [], member = [], key = [] }: SmallRules = {},
  { providers = NO_PROVIDERS, served = ['openai', 'azure'] }: SmallCredentials = {},
): World => ({
  catalog,
  servedProviders: new Set(served),
  organizations: new Map([
    ['org_1', { id: 'org_1', name: 'Example', ruleRevision: 3, rules: organization, providers }],
  ]),
  groups: new Map([
    [
      'grp_1',
      { id: 'grp_1', organizationId: 'org_1', name: 'team', holderIds: new Set(['mem_1', 'mem_gone']), rules: group },
    ],
  ]),
  members: new Map([['mem_1', { id: 'mem_1', organizationId: 'org_1', email: 'a@example.com', rules: member }]]),
  keys: new Map([
    [
      'key_1',
      {
        id: 'key_1',
        organizationId: 'org_1',
        projectId: 'proj_1',
        memberId: 'mem_1',
        description: 'one',
        tags: [],
        rules: key,
      },
    ],
  ]),
});

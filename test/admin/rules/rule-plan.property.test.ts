/** What a write of a rule newly permits, by the policy itself, is never more than nothing where its plan says that it cannot widen. */
import fc from 'fast-check';
import { afterAll, expect, it } from 'vitest';
import { createRule, readRuleCreation, readRuleDeletion, readRulePlan } from '../../../src/admin/rules/iam-rules.ts';
import type { RuleOwner } from '../../../src/admin/rules/rule-owner.ts';
import { RULE_TYPES } from '../../../src/domain/iam-rule.ts';
import type { RuleCreate } from '../../../src/generated/types.ts';
import { readBundle } from '../../../src/policy/bundle.ts';
import { widening } from '../../../src/workbench/analysis/drafts.ts';
import { createJudges } from '../../../src/workbench/world/judges.ts';
import { readWorld } from '../../../src/workbench/world/world.ts';
import { propertyRuns, propertyTimeout } from '../../policy/property-runs.ts';
import { catalog, ID, owner, seededDatabase, startMs } from '../tenants.ts';

const RUNS = 200;
const installation = { catalog, servedProviders: new Set(['sandbox']) };
const write = { now: startMs, catalog, trustedProxies: [] };
const KEY: RuleOwner = { kind: 'key', key: ID.ownerKey };

const mappings = catalog.mappings().filter(({ providerId }) => providerId === 'sandbox');
const judges = createJudges(readBundle(), mappings, 0);
afterAll(() => judges.close());

/** Of each kind two values of which one says more, and one that says something else. */
const VALUES: readonly RuleCreate['ruleValue'][] = [
  { models: ['sandbox-free'] },
  { models: ['sandbox-f*'] },
  { models: ['sandbox-paid'] },
  { providers: ['sandbox'] },
  { providers: ['sandbox', 'openai'] },
  { providers: ['openai'] },
  { pricingType: 'free' },
  { maxInputPrice: '0' },
  { pricingType: 'paid' },
  { ipCidrs: ['192.0.2.0/24'] },
  { ipCidrs: ['192.0.0.0/16'] },
  { ipCidrs: ['10.0.0.0/8'] },
  { tags: ['region:eu'] },
  { tags: ['region:*'] },
  { tags: ['region:us'] },
];
const FIELDS = {
  models: ['models'],
  providers: ['providers'],
  pricing: ['pricingType', 'maxInputPrice'],
  ip_cidrs: ['ipCidrs'],
  tags: ['tags'],
};

const rule = fc
  .tuple(
    fc.constantFrom(...RULE_TYPES),
    fc.nat(2),
    fc.constantFrom({}, {}, {}, { mode: 'report' as const }, { status: 'inactive' as const }),
  )
  .map(([ruleType, which, as]) => {
    const fields = Object.entries(FIELDS).find(([kind]) => ruleType.endsWith(`_${kind}`))?.[1] ?? [];
    const ruleValue = VALUES.filter((value) => fields.some((field) => field in value))[which];
    return { ruleType, ruleValue, status: 'active', mode: 'enforce', ...as };
  });

it(
  'a write that is not judged permits nothing new',
  async () => {
    const seen = { judged: 0, widened: 0, unjudged: 0 };
    await fc.assert(
      fc.asyncProperty(
        fc.array(rule, { maxLength: 3 }),
        fc.option(rule, { nil: null }),
        fc.option(rule, { nil: null }),
        async (others, before, after) => {
          const db = seededDatabase();
          for (const other of others) createRule(db, owner, KEY, other, write);
          const id = before === null ? null : createRule(db, owner, KEY, before, write).rule.id;
          if (id === null && after === null) return;
          const plan =
            id === null
              ? readRuleCreation(db, owner, KEY, after)
              : after === null
                ? readRuleDeletion(db, owner, KEY, id, false)
                : readRulePlan(db, owner, KEY, id, after);
          const world = readWorld(db, installation, ID.organization);
          db.close();
          const { count } = await widening(judges, world, plan);
          if (plan.matters) seen.judged += 1;
          else seen.unjudged += 1;
          if (count > 0) seen.widened += 1;
          expect(count > 0 && !plan.matters).toBe(false);
        },
      ),
      propertyRuns(RUNS),
    );
    // All three come up, or the cases say nothing.
    expect(Math.min(seen.judged, seen.widened, seen.unjudged)).toBeGreaterThan(0);
  },
  propertyTimeout(RUNS),
);

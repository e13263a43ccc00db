// A change of a rule is judged outside the writing thread: again where rules changed meanwhile, and never by half.
import { describe, expect, it } from 'vitest';
import { changeJudged, type JudgedChange, type RulePlan, StaleRules } from '../../../src/admin/rules/judged-change.ts';
import { ApiError } from '../../../src/domain/errors.ts';
import type { RuleChangeAnswer } from '../../../src/generated/types.ts';

const plan = (ruleRevision: number, more: Partial<RulePlan> = {}): RulePlan => ({
  subject: { scope: 'key', id: 'key_1' },
  ruleId: 'rule_1',
  rule: { ruleType: 'deny_models', ruleValue: { models: ['a'] } },
  ruleRevision,
  matters: true,
  failOnNewAccess: false,
  ...more,
});
const rule: RuleChangeAnswer['rule'] = {
  id: 'rule_1',
  createdAt: '',
  updatedAt: '',
  ruleType: 'deny_models',
  ruleValue: { models: ['a'] },
  status: 'active',
  mode: 'enforce',
  description: null,
};

/** The answer, and for what revisions it was tried to be written. */
async function change(revisions: readonly number[], judging: () => object, more: Partial<RulePlan> = {}) {
  let planned = 0;
  const tried: JudgedChange[] = [];
  const answer = await changeJudged({
    plan: async () => plan(planned++, more),
    judge: async () => ({ count: 0, cells: [], ...judging() }),
    write: async (judged) => {
      const now = revisions[tried.push(judged) - 1];
      if (now !== judged.ruleRevision) throw new StaleRules();
      return { rule, before: rule, warnings: [], widens: judged.widens };
    },
  });
  return { widens: answer.widens, tried: tried.map(({ ruleRevision }) => ruleRevision) };
}

const tooSlow = (): never => {
  throw new ApiError(504, 'analysis_timeout', 'too slow');
};
const status = (wanted: number) => expect.objectContaining({ status: wanted });

describe('a judged change', () => {
  it('is judged again when rules changed meanwhile, and given up after three times', async () => {
    expect(await change([9, 1], () => ({ count: 2 }))).toEqual({ widens: { count: 2, cells: [] }, tried: [0, 1] });
    await expect(change([9, 9, 9], () => ({}))).rejects.toThrow(status(503));
    await expect(change([9, 9, 9, 3], () => ({}), { failOnNewAccess: true })).rejects.toThrow(status(503));
  });

  it('is made without a judgement when rules keep changing, unless it must not widen anything', async () => {
    expect(await change([9, 9, 9, 3], () => ({ count: 2 }))).toEqual({ widens: null, tried: [0, 1, 2, 3] });
  });

  it('is made without a judgement that takes too long, unless it must not widen anything', async () => {
    expect(await change([0], tooSlow)).toEqual({ widens: null, tried: [0] });
    await expect(change([0], tooSlow, { failOnNewAccess: true })).rejects.toThrow(status(504));
  });

  it('that changes nothing enforced is not judged', async () => {
    expect(await change([0], tooSlow, { matters: false })).toEqual({ widens: { count: 0, cells: [] }, tried: [0] });
  });

  it('fails as its judge does', async () => {
    const broken = (): never => {
      throw new ApiError(404, 'not_found', 'gone');
    };
    await expect(change([0], broken)).rejects.toThrow(status(404));
  });
});

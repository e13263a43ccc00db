// What src/domain/iam-rule.ts says of each rule type is what the compiled policy does.
import { expect, it } from 'vitest';
import { factsOf, RULE_TYPES } from '../../src/domain/iam-rule.ts';
import { createPdp } from '../../src/policy/pdp.ts';
import { CALL, CASES } from '../../src/policy/self-test.ts';
import { dataOfKey } from './policy-call.ts';

const pdp = createPdp();

it.each(RULE_TYPES)('%s judges moderations, or not', (type) => {
  const [[denying]] = CASES[type];
  const permitted = pdp.permitted({ ...CALL, action: 'moderation' }, dataOfKey(denying));
  expect(permitted).toEqual(factsOf(type).judgesModeration ? [] : ['acme/swift-1']);
});

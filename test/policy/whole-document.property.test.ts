/** The data document of one call's subjects and the document of all subjects must decide alike. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { PolicyRule } from '../../src/domain/iam-rule.ts';
import type { PolicyInput } from '../../src/generated/types.ts';
import { compileSubjectRules, dataDocument } from '../../src/policy/data-document.ts';
import { createPdp } from '../../src/policy/pdp.ts';
import { policyCase, subjects } from './arbitraries.ts';
import { propertyRuns } from './property-runs.ts';

const pdp = createPdp();

const compiled = (owners: readonly { id: string; rules: readonly PolicyRule[] }[]) =>
  owners.map(({ id, rules }) => ({ id, rules: compileSubjectRules(rules) }));

test('the restricted and the whole data document decide alike', () => {
  fc.assert(
    fc.property(policyCase, fc.array(subjects, { maxLength: 3 }), (request, strangers) => {
      const input: PolicyInput = {
        action: request.action,
        client_ip: request.clientIp,
        subjects: request.subjects.map(({ scope, id }) => ({ scope, id })),
        candidates: [...request.candidates],
      };
      const others = strangers.flatMap((owners, index) =>
        owners.map((owner) => ({ ...owner, id: `${owner.id}_${index}` })),
      );
      const restricted = dataDocument(compiled(request.subjects));
      const whole = dataDocument(compiled([...others, ...request.subjects]));
      expect(pdp.decide(input, whole)).toEqual(pdp.decide(input, restricted));
      expect(pdp.permitted(input, whole)).toEqual(pdp.permitted(input, restricted));
    }),
    propertyRuns(500),
  );
});

import { validator } from '../../src/lib/schemas.ts';
import { type DataDocument, dataDocument } from '../../src/policy/data-document.ts';
import { ENTRYPOINTS, type WasmEngine } from '../../src/policy/engine.ts';
import { CALL, CASES, SWIFT } from '../../src/policy/self-test.ts';
import { dataOfKey, denyModels, ipRule, pricingRule } from '../../test/policy/policy-call.ts';
import { canonicalText } from './canonical-decision.ts';

const validatePolicyDecision = validator('PolicyDecision');

/** A call that production never makes, and what the policy itself must make of it, whatever checks stand around it. */
interface HostileCall {
  readonly name: string;
  readonly input: object;
  readonly data: DataDocument;
  /** The rule that must deny it; null: it cannot be judged, so nothing is permitted and nothing violated. */
  readonly deniedBy: string | null;
}

const OPEN = dataOfKey();
const [SUBJECT] = CALL.subjects;

const unjudgeable = (name: string, change: object, data = OPEN): HostileCall => ({
  name,
  input: { ...CALL, ...change },
  data,
  deniedBy: null,
});
const denied = (name: string, change: object, data: DataDocument): HostileCall => ({
  name,
  input: { ...CALL, ...change },
  data,
  deniedBy: 'rule_1',
});
const candidate = (change: object): object => ({ candidates: [{ ...SWIFT, ...change }] });
/** What cannot be judged stays so when the shadow of report rules is asked for too. */
const REPORTING = dataOfKey({ ...denyModels('swift-1'), mode: 'report' });

const keyData = (rules: string): DataDocument => dataDocument([{ id: 'key_1', rules }]);

/** `ranges` as no rule compiler of ours writes them. */
const ipData = (type: string, range: string): DataDocument =>
  keyData(JSON.stringify({ enforce: { [type]: { rules: ['rule_1'], ranges: { [range]: ['rule_1'] } } } }));

/** Rules on what a candidate may lack, where it stands there and cannot be compared. */
const INCOMPARABLE = Object.values(CASES)
  .flat()
  .flatMap(([denying, passing, unknown]) =>
    unknown === null || unknown === 'client_ip'
      ? []
      : [denying, passing].flatMap((rule) =>
          ['1', null].map((value) =>
            denied(`${rule.ruleType}, ${unknown} ${value}`, candidate({ [unknown]: value }), dataOfKey(rule)),
          ),
        ),
  );

const CALLS: readonly HostileCall[] = [
  unjudgeable('an unknown action', { action: 'embed' }),
  unjudgeable('no action', { action: undefined }),
  unjudgeable('an address that is a number', { client_ip: 7 }),
  unjudgeable('no address', { client_ip: undefined }),
  unjudgeable('no subjects', { subjects: [] }),
  unjudgeable('an absent subject', { subjects: [SUBJECT, { scope: 'member', id: 'mem_9' }] }),
  unjudgeable('no candidates', { candidates: [] }),
  unjudgeable('a candidate twice', { candidates: [SWIFT, SWIFT] }),
  unjudgeable('a candidate without names', candidate({ names: [] })),
  unjudgeable('a candidate with no list of names', candidate({ names: undefined })),
  unjudgeable('a candidate without provider names', candidate({ provider_names: [] })),
  unjudgeable('a candidate with no list of provider names', candidate({ provider_names: undefined })),
  unjudgeable('a candidate without pricing type', candidate({ free: undefined })),
  unjudgeable('a pricing type that is a text', candidate({ free: 'yes' })),
  unjudgeable('a candidate without id', candidate({ id: undefined })),
  unjudgeable('an id that is a number', candidate({ id: 7 })),
  unjudgeable('no data', {}, { text: '{}', digest: 'none' }),
  unjudgeable('data of another shape', {}, { text: '{"subjects":[]}', digest: 'list' }),
  unjudgeable('a subject without an enforced rule set', {}, keyData('{}')),
  unjudgeable('a subject with a shadow alone', {}, keyData('{"shadow":{},"report_rules":{"rule_1":true}}')),
  unjudgeable('an unknown action, with report rules', { action: 'embed' }, REPORTING),
  denied('a deny range that cannot be compared', {}, ipData('deny_ip_cidrs', '192.0.2/24')),
  denied('an allow range that cannot be compared', {}, ipData('allow_ip_cidrs', '192.0.2/24')),
  denied(
    'an address that cannot be compared with a deny range',
    { client_ip: 'home' },
    dataOfKey(ipRule('rule_1', 'deny', '10.0.0.0/8')),
  ),
  denied(
    'an address that cannot be compared with an allow range',
    { client_ip: 'home' },
    dataOfKey(ipRule('rule_1', 'allow', '0.0.0.0/0')),
  ),
  ...INCOMPARABLE,
  denied(
    'a price beyond every integer',
    candidate({ input_price: 1e300 }),
    dataOfKey(pricingRule('rule_1', 'deny', { maxInputPrice: '9' })),
  ),
  denied('more fields than there are', { extra: true }, dataOfKey(denyModels('swift-1'))),
];

const UNJUDGED = canonicalText({ permitted: [], violations: [] });

/** The name of the first call that a policy does not answer as it must, or null. */
export function wrongAnswer(engine: WasmEngine): string | null {
  return CALLS.find((call) => !isRight(engine, call))?.name ?? null;
}

function isRight(engine: WasmEngine, { input, data, deniedBy }: HostileCall): boolean {
  const [decision, permitted] = ENTRYPOINTS.map((entrypoint) => {
    try {
      return engine.evaluate(entrypoint, input, data).result;
    } catch {
      return 'undefined';
    }
  });
  if (deniedBy === null) return canonicalText(decision) === UNJUDGED && permitted === 'undefined';
  if (!validatePolicyDecision(decision)) return false;
  const rules = decision.violations.map(({ ruleIds }) => ruleIds.join());
  return decision.permitted.length === 0 && canonicalText(permitted) === '[]' && rules.join(' and ') === deniedBy;
}

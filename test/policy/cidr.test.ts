/** Where WASM and Go disagree about ranges, and that canonical addresses and ranges leave nothing to disagree about. */
import { describe, expect, test } from 'vitest';
import { canonicalAddress } from '../../src/domain/address.ts';
import { dataDocument } from '../../src/policy/data-document.ts';
import { createPdp } from '../../src/policy/pdp.ts';
import { CALL, dataOfKey, ipRule } from './policy-call.ts';

const pdp = createPdp();

/** As the compiled policy sees a range and an address that nobody made canonical. */
function rawOutcome(effect: 'allow' | 'deny', range: string, address: string) {
  const rules = JSON.stringify({
    enforce: { [`${effect}_ip_cidrs`]: { rules: ['rule_1'], ranges: { [range]: ['rule_1'] } } },
  });
  const data = dataDocument([{ id: 'key_1', rules }]);
  return pdp.decide({ ...CALL, client_ip: address }, data).permitted.length === 1 ? 'permitted' : 'denied';
}

function outcome(effect: 'allow' | 'deny', range: string, address: string) {
  const input = { ...CALL, client_ip: canonicalAddress(address) };
  return pdp.decide(input, dataOfKey(ipRule('rule_1', effect, range))).permitted.length === 1 ? 'permitted' : 'denied';
}

describe('the compiled policy alone', () => {
  test.each([
    ['does not unwrap an IPv4-mapped address', '10.0.0.0/8', '::ffff:10.1.2.3', 'permitted', 'denied'],
    ['does not unwrap an IPv4-mapped range', '::ffff:10.0.0.0/104', '10.1.2.3', 'permitted', 'denied'],
    ['masks host bits', '10.1.2.3/8', '10.9.9.9', 'denied', 'permitted'],
    ['keeps families apart', '::/0', '10.1.2.3', 'permitted', 'denied'],
    ['cannot compare a bare address, so denies', '10.1.2.3', '10.1.2.3', 'denied', 'denied'],
    ['cannot compare a zone id, so denies', 'fe80::/10', 'fe80::1%eth0', 'denied', 'denied'],
    ['cannot compare leading zeros, so denies', '10.0.0.0/8', '010.1.2.3', 'denied', 'denied'],
    ['cannot compare nonsense, so denies', 'nonsense', '10.1.2.3', 'denied', 'denied'],
  ])('%s', (_, range, address, denyRule, allowRule) => {
    expect([rawOutcome('deny', range, address), rawOutcome('allow', range, address)]).toEqual([denyRule, allowRule]);
  });
});

describe('an address inside a range is denied by a deny rule and permitted by an allow rule', () => {
  test.each([
    ['10.0.0.0/8', '::ffff:10.1.2.3'],
    ['::ffff:10.0.0.0/104', '10.1.2.3'],
    ['::ffff:0:0/96', '198.51.100.1'],
    ['10.1.2.3/8', '10.255.255.255'],
    ['0.0.0.0/0', '255.255.255.255'],
    ['192.0.2.1/32', '192.0.2.1'],
    ['::/0', '2001:db8::1'],
    ['2001:DB8::/32', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['2001:db8::1/128', '2001:0DB8:0::1'],
  ])('%s holds %s', (range, address) => {
    expect([outcome('deny', range, address), outcome('allow', range, address)]).toEqual(['denied', 'permitted']);
  });
});

describe('an address outside of a range is denied by an allow rule and permitted by a deny rule', () => {
  test.each([
    ['10.0.0.0/8', '11.0.0.0'],
    ['10.0.0.0/8', '9.255.255.255'],
    ['192.0.2.1/32', '192.0.2.2'],
    ['::/0', '10.1.2.3'],
    ['::/0', '::ffff:10.1.2.3'],
    ['0.0.0.0/0', '2001:db8::1'],
    ['2001:db8::/32', '2001:db9::'],
  ])('%s does not hold %s', (range, address) => {
    expect([outcome('deny', range, address), outcome('allow', range, address)]).toEqual(['permitted', 'denied']);
  });
});

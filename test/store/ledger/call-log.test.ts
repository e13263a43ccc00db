// The search for calls finds what a look at each of them finds, whatever part of the ledger is indexed.
import { BlockList } from 'node:net';
import { expect, test } from 'vitest';
import { parseAddressOrRange } from '../../../src/domain/address.ts';
import { bytesOfId, idLike, idsFrom, newId } from '../../../src/domain/id.ts';
import type { Database } from '../../../src/store/db/database.ts';
import { build } from '../../../src/store/db/sql.ts';
import { BLOCK, nextBlock, storeBlock } from '../../../src/store/ledger/call-index.ts';
import { type CallFilter, getLoggedCall, searchCalls, searchDecided } from '../../../src/store/ledger/call-log.ts';
import { createCallReferences, getDataDocument, getDecision } from '../../../src/store/ledger/references.ts';
import { forgetCalls, forgetReferences } from '../../../src/store/ledger/retention.ts';
import { giveUpCalls, insertCall } from '../../support/stored-calls.ts';
import { newDecision, START, storeWithTenant } from '../fixture.ts';

const HOUR = 3_600_000;
const CALLS = 2 * BLOCK + 500;
const RULES = Array.from({ length: 40 }, () => newId('rule'));
const ruleOf = (place: number): string => RULES[place % RULES.length] ?? '';
const GROUPS = Array.from({ length: 9 }, () => newId('grp'));
const groupOf = (place: number): string => GROUPS[place % GROUPS.length] ?? '';
const reasonOf = (place: number) => (place % 2 === 0 ? 'deny_models' : 'allow_providers');

/** IPv4, IPv6 in two networks of one /32, or unknown. */
function addressAt(place: number): string | null {
  if (place % 29 === 0) return null;
  if (place % 31 === 0) return `2001:db8:${place % 2}:7::${(place % 50).toString(16)}`;
  return `192.0.${place % 3}.${place % 50}`;
}

/** By Node's own list of networks, within one family. */
function isIn(range: string): (place: number) => boolean {
  const family = range.includes(':') ? 'ipv6' : 'ipv4';
  const [network = '', prefix = ''] = range.split('/');
  const list = new BlockList();
  list.addSubnet(network, Number(prefix), family);
  return (place) => {
    const address = addressAt(place);
    const isSameFamily = address?.includes(':') === range.includes(':');
    return isDecided(place) && address !== null && isSameFamily && list.check(address, family);
  };
}

/** What is stored of the call at each place. */
function callAt(place: number, organizationId: string) {
  const isDenied = place % 5 === 0;
  const isOpen = place % 97 === 1;
  return {
    organizationId: place % 11 === 0 ? 'org_other' : organizationId,
    projectId: 'proj_1',
    keyId: `key_${place % 7}`,
    memberId: `mem_${place % 3}`,
    requestedModel: `model-${place % 13}`,
    modelId: isDenied || isOpen ? null : `served-${place % 13}`,
    providerId: isDenied || isOpen ? null : `provider-${place % 4}`,
    clientAddress: addressAt(place),
    requestId: `req_${place.toString(16).padStart(32, '0')}`,
    clientRequestId: place % 3 === 0 ? `own-${place % 900}` : null,
    tookMs: place % 19 === 0 ? null : (place % 19) * 100,
    state: isDenied ? 'denied' : isOpen ? 'open' : 'settled',
  } as const;
}

function decisionAt(place: number) {
  const isDenied = place % 5 === 0;
  const [effect, kind] = reasonOf(place).split('_');
  const violations = [{ ruleIds: [ruleOf(place), ruleOf(place + 1)] }];
  return newDecision({
    outcome: isDenied ? 'deny' : 'permit',
    reasonJson: isDenied ? JSON.stringify({ scope: 'key', effect, kind, ruleIds: [ruleOf(place)], values: [] }) : null,
    inputJson: JSON.stringify({ subjects: [{ scope: 'group', id: groupOf(place) }] }),
    violationsJson: isDenied ? JSON.stringify(violations) : '[]',
    shadowJson: place % 17 === 0 ? JSON.stringify({ would_deny: [ruleOf(place + 3)], would_allow: [] }) : null,
  });
}

async function filled() {
  const { store, tenant } = await storeWithTenant({ auditKey: Buffer.alloc(32, 1) });
  const { organizationId } = tenant;
  const ids = await store.write((db) => {
    const references = createCallReferences(db);
    return Array.from({ length: CALLS }, (_, place) => {
      const decision = place % 23 === 0 ? undefined : decisionAt(place);
      const call = callAt(place, organizationId);
      return insertCall(db, START + place * 1000, call, decision, references).id;
    });
  });
  return { store, organizationId, ids };
}

/** All that is found, page by page. */
function found(db: Database, filter: CallFilter, limit = CALLS): string[] {
  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const page = searchCalls(db, filter, { limit, cursor });
    ids.push(...page.items.map(({ id }) => id));
    expect(page.items.length).toBeLessThanOrEqual(limit);
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return ids;
}

type Asked = readonly [filter: Omit<CallFilter, 'organizationId'>, isWanted: (place: number) => boolean];

const isDecided = (place: number): boolean => place % 23 !== 0;
const isDenied = (place: number): boolean => place % 5 === 0 && isDecided(place);
const isServed = (place: number): boolean => place % 5 !== 0 && place % 97 !== 1;
const names = (place: number, rule: number): boolean =>
  isDecided(place) &&
  ((place % 5 === 0 && [place, place + 1].some((each) => ruleOf(each) === RULES[rule])) ||
    (place % 17 === 0 && ruleOf(place + 3) === RULES[rule]));

const inRange = (range: string): Asked => [{ addresses: parseAddressOrRange(range) }, isIn(range)];

const SEARCHES: readonly Asked[] = [
  [{}, () => true],
  [{ isDecided: true }, isDecided],
  [{ keyId: 'key_3' }, (place) => place % 7 === 3],
  [{ memberId: 'mem_1' }, (place) => place % 3 === 1],
  [{ model: 'model-5' }, (place) => place % 13 === 5],
  [{ model: 'served-5' }, (place) => place % 13 === 5 && isServed(place)],
  [{ provider: 'provider-2' }, (place) => place % 4 === 2 && isServed(place)],
  [{ outcome: 'deny' }, isDenied],
  [{ outcome: 'permit' }, (place) => isDecided(place) && place % 5 !== 0],
  [{ reason: 'deny_models' }, (place) => isDenied(place) && place % 2 === 0],
  [{ reason: 'deny_pricing' }, () => false],
  [{ ruleId: RULES[4] }, (place) => names(place, 4)],
  [{ ruleId: newId('rule') }, () => false],
  [{ groupId: GROUPS[4] }, (place) => isDecided(place) && groupOf(place) === GROUPS[4]],
  [{ groupId: GROUPS[5], ruleId: RULES[5] }, (place) => names(place, 5) && groupOf(place) === GROUPS[5]],
  [{ groupId: newId('grp') }, () => false],
  ...['192.0.2.7/32', '192.0.2.0/24', '192.0.1.8/29', '10.0.0.0/8'].map(inRange),
  ...['2001:db8::/32', '2001:db8:1::/48', '2001:db8:0:7::/64', '2001:db8:0:7::4/126', '::/0', '::/96'].map(inRange),
  ...['2001:db8:1:7::1f/128'].map(inRange),
  [
    { reportedBy: { ruleId: RULES[6] ?? '', revision: 3 } },
    (place) => isDecided(place) && place % 17 === 0 && ruleOf(place + 3) === RULES[6],
  ],
  [{ reportedBy: { ruleId: RULES[6] ?? '', revision: 4 } }, () => false],
  [{ requestId: `req_${(77).toString(16).padStart(32, '0')}` }, (place) => place === 77],
  [{ clientRequestId: 'own-300' }, (place) => place % 900 === 300],
  [{ slowerThan: 1799 }, (place) => place % 19 === 18],
  [{ slowerThan: 1800 }, () => false],
  [{ slowerThan: 999_999_999 }, () => false],
  [{ from: START + 700_000, to: START + 900_000 }, (place) => place >= 700 && place < 900],
  [
    { from: START + (BLOCK - 3) * 1000, to: START + (BLOCK + 3) * 1000 },
    (place) => Math.abs(place - BLOCK + 0.5) < 3.5,
  ],
  [
    { keyId: 'key_3', outcome: 'deny', reason: 'allow_providers', to: START + 5000_000 },
    (place) => place % 7 === 3 && isDenied(place) && place % 2 === 1 && place < 5000,
  ],
];

test('finds the same before and after the ledger is indexed, newest first, page by page, of one organization', async () => {
  const { store, organizationId, ids } = await filled();
  const expected = SEARCHES.map(([, isWanted]) =>
    ids.filter((_, place) => place % 11 !== 0 && isWanted(place)).reverse(),
  );
  const all = (db: Database) => SEARCHES.map(([filter]) => found(db, { organizationId, ...filter }));
  // Without those that find thousands, to save time.
  const exports = SEARCHES.filter((_, search) => (expected[search]?.length ?? 0) < 800);
  const decided = exports.map(([, isWanted]) =>
    ids.filter((_, place) => place % 11 !== 0 && isDecided(place) && isWanted(place)),
  );
  /** Oldest first. */
  const exported = (db: Database) =>
    exports.map(([filter]) => [...searchDecided(db, { organizationId, ...filter })].map(({ call }) => call.id));

  expect(await store.read(all)).toEqual(expected);
  expect(await store.read(exported)).toEqual(decided);

  for (const indexed of [1, 2]) {
    const block = await store.read(nextBlock);
    await store.write((db) => block !== undefined && storeBlock(db, block));
    await store.write((db) => block !== undefined && storeBlock(db, block)); // It changes nothing.
    expect([indexed, await store.read(all)]).toEqual([indexed, expected]);
    expect([indexed, await store.read(exported)]).toEqual([indexed, decided]);
  }
  expect(await store.read(nextBlock)).toBeUndefined();
  expect(await store.read((db) => found(db, { organizationId, keyId: 'key_3' }, 300))).toEqual(expected[2]);
  expect(await store.read((db) => found(db, { organizationId: 'org_nobody' }))).toEqual([]);
}, 120_000);

test('what retention deletes is found no more, and leaves the index', async () => {
  const { store, organizationId, ids } = await filled();
  for (let block = await store.read(nextBlock); block !== undefined; block = await store.read(nextBlock)) {
    const next = block;
    await store.write((db) => storeBlock(db, next));
  }
  const lasts = (db: Database) =>
    db.all(build.selectFrom('call_index').select('last').distinct().orderBy('last')).length;
  expect(await store.read(lasts)).toBe(2);
  const before = START + 2 * HOUR;
  await store.write((db) => giveUpCalls(db, before));
  for (const forget of [forgetCalls, forgetReferences]) {
    while ((await store.write((db) => forget(db, before, 2000))) > 0);
  }
  // Open calls stay.
  const isKept = (place: number): boolean => place >= 7200 || callAt(place, organizationId).state === 'open';
  const expected = ids.filter((_, place) => place % 11 !== 0 && place % 7 === 3 && isKept(place)).reverse();
  expect(await store.read((db) => found(db, { organizationId, keyId: 'key_3' }))).toEqual(expected);
  expect(await store.read(lasts)).toBe(2);
  await store.write((db) => db.run(build.deleteFrom('ledger').where('createdAt', '<', START + BLOCK * 1000)));
  while ((await store.write((db) => forgetReferences(db, before, 2000))) > 0);
  expect(await store.read(lasts)).toBe(1);
}, 60_000);

test('finds a call by its id and by that of its decision, of one organization', async () => {
  const { store, tenant } = await storeWithTenant();
  const { organizationId } = tenant;
  const { id, number } = await store.write((db) => insertCall(db, START, callAt(5, organizationId), decisionAt(5)));
  const get = (of: string, asked: string) => store.read((db) => getLoggedCall(db, of, asked));

  expect(await get(organizationId, id)).toEqual({
    id,
    number,
    organizationId,
    decisionId: idLike(id, 'dec'),
    requestId: `req_${'5'.padStart(32, '0')}`,
    clientRequestId: null,
    state: 'denied',
    createdAt: START,
    settledAt: START,
    projectId: 'proj_1',
    keyId: 'key_5',
    memberId: 'mem_2',
    action: 'chat',
    tool: null,
    requestedModel: 'model-5',
    stream: 0,
    clientAddress: '192.0.2.5',
    outcome: 'deny',
    reason: 'allow_providers',
    shadowPermitted: null,
    modelId: null,
    providerId: null,
    providerKeyId: null,
    attempts: null,
    cost: 0n,
    costDetails: null,
    priceUnknown: 0,
    promptTokens: 0,
    completionTokens: 0,
    reasoningTokens: 0,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    usageEstimated: 0,
    cached: 0,
    statusCode: 200,
    errorCode: null,
    tookMs: 500,
    times: undefined,
  });
  expect(await get(organizationId, idLike(id, 'dec'))).toEqual(await get(organizationId, id));
  await expect(get('org_other', id)).rejects.toMatchObject({ status: 404 });
  await expect(get(organizationId, newId('call'))).rejects.toMatchObject({ status: 404 });
});

test('finds a call that stands far behind the time in its id, before it is indexed and after', async () => {
  const { store, tenant } = await storeWithTenant();
  const { organizationId } = tenant;
  const anHourAgo = idsFrom('call', START - 3_600_000).replace(/0{4}$/, 'beef');
  /** The clock went back while no server ran: the row follows the last one. */
  const displace = (db: Database): void => {
    const { number } = insertCall(db, START + 1000, callAt(5, organizationId), decisionAt(5));
    db.run(
      build
        .updateTable('ledger')
        .set({ id: bytesOfId(anHourAgo) })
        .where('number', '=', number),
    );
  };
  const found = async () => {
    const decision = idLike(anHourAgo, 'dec');
    const call = await store.read((db) => getLoggedCall(db, organizationId, anHourAgo));
    const [decided, text] = await store.read((db) => [
      getDecision(db, organizationId, decision),
      getDataDocument(db, organizationId, decision),
    ]);
    return [call.id, call.decisionId, decided.callId, text];
  };
  const expected = [anHourAgo, idLike(anHourAgo, 'dec'), anHourAgo, newDecision().dataText];

  await store.write(displace);
  expect(await found()).toEqual(expected);
  await store.write((db) => {
    const references = createCallReferences(db);
    for (let place = 0; place < BLOCK; place += 1) {
      insertCall(db, START + HOUR + place * 1000, callAt(place, organizationId), undefined, references);
    }
    const block = nextBlock(db);
    if (block !== undefined) storeBlock(db, block);
  });
  expect(await found()).toEqual(expected);
  await expect(store.read((db) => getLoggedCall(db, 'org_other', anHourAgo))).rejects.toMatchObject({ status: 404 });
}, 60_000);

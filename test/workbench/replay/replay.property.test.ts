/** Replays against brute force: each logged call asked of the oracle once more, by the rules of then and of now. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { ReplayChange } from '../../../src/generated/types.ts';
import { getOrMake } from '../../../src/lib/collections.ts';
import { denialReason } from '../../../src/policy/denial.ts';
import { inputDocument } from '../../../src/policy/input-document.ts';
import { createPdp } from '../../../src/policy/pdp.ts';
import { openDatabase } from '../../../src/store/db/database.ts';
import { REPLAY_DIMENSIONS, replay, replayBy } from '../../../src/workbench/replay/replay.ts';
import { keySubjects, type World } from '../../../src/workbench/world/world.ts';
import { oracleDecision } from '../../policy/oracle.ts';
import { propertyRuns, propertyTimeout } from '../../policy/property-runs.ts';
import { type LoggedCall, logDecision } from '../../support/logged-decisions.ts';
import { catalog, worlds } from '../worlds.ts';

const RUNS = 60;
const START = Date.UTC(2026, 0, 31);
const pdp = createPdp();

const calls = fc.array(
  fc.record({
    keyId: fc.constantFrom('key_1', 'key_2', 'key_3'),
    model: fc.constantFrom('gpt-5', 'gpt', 'openai/gpt-5', 'opus', '42'),
    address: fc.constantFrom(null, '10.1.2.3', '192.0.2.128', '2001:db8::1'),
  }),
  { minLength: 1, maxLength: 40 },
);

type Asked = Omit<LoggedCall, 'time'> & { readonly address: string | null };

function oracleOf(world: World, { keyId, model, address }: Asked) {
  const key = world.keys.get(keyId);
  if (key === undefined) throw new Error('no key');
  const subjects = keySubjects(world, key);
  const input = inputDocument('chat', address, subjects, catalog.resolve(model) ?? []);
  const decision = oracleDecision({ action: 'chat', clientIp: address, subjects, candidates: input.candidates });
  const reason = decision.permitted.length === 0 ? denialReason(input, decision) : undefined;
  return { ...decision, ...(reason === undefined ? {} : { reason }), memberId: key.memberId };
}

interface Changed {
  readonly change: ReplayChange;
  /** Of the rules that deny on the side that denies. */
  readonly ruleIds: readonly string[];
  readonly memberId: string;
}

function changeOf(before: World, after: World, call: Asked): Changed | undefined {
  const [then, now] = [oracleOf(before, call), oracleOf(after, call)];
  const { memberId } = then;
  const [gained = [], lost = []] = [
    now.permitted.filter((id) => !then.permitted.includes(id)),
    then.permitted.filter((id) => !now.permitted.includes(id)),
  ];
  const against = (candidates: readonly string[], { violations }: typeof then) => [
    ...new Set(violations.flatMap(({ candidate, ruleIds }) => (candidates.includes(candidate ?? '') ? ruleIds : []))),
  ];
  if (then.reason !== undefined && now.reason !== undefined) return undefined;
  if (now.reason !== undefined) return { change: 'denied', ruleIds: [...now.reason.ruleIds], memberId };
  if (then.reason !== undefined) return { change: 'permitted', ruleIds: [...then.reason.ruleIds], memberId };
  if (gained.length > 0) return { change: 'widened', ruleIds: against(gained, then).sort(), memberId };
  if (lost.length > 0) return { change: 'narrowed', ruleIds: against(lost, now).sort(), memberId };
  return undefined;
}

it(
  'groups hold exactly the calls that change, by key, member, rules and model; the data of then gives the same bytes',
  () => {
    fc.assert(
      fc.property(worlds, worlds, calls, fc.subarray([...REPLAY_DIMENSIONS]), (before, after, asked, groupBy) => {
        const db = openDatabase(':memory:', { create: true });
        const ids = asked.map((call, index) => logDecision(db, before, { ...call, time: START + index }));
        const counts = { denied: 0, permitted: 0, widened: 0, narrowed: 0 };
        const groups = new Map<string, { calls: number; alike: Map<string, string> }>();
        for (const [index, call] of asked.entries()) {
          const changed = changeOf(before, after, call);
          if (changed === undefined) continue;
          const { change, ruleIds, memberId } = changed;
          const by = <T>(dimension: (typeof groupBy)[number], value: T) => (groupBy.includes(dimension) ? value : null);
          const place = {
            change,
            key: by('key', { id: call.keyId, name: after.keys.get(call.keyId)?.description }),
            member: by('member', { id: memberId, name: after.members.get(memberId)?.email }),
            model: by('model', call.model),
            ruleIds: by('rule', ruleIds),
          };
          const group = getOrMake(groups, JSON.stringify(place), () => ({ calls: 0, alike: new Map() }));
          group.calls += 1;
          getOrMake(group.alike, JSON.stringify(call), () => ids[index] ?? '');
          counts[change] += 1;
        }
        const expected = [...groups].map(([place, group]) => ({
          ...JSON.parse(place),
          decisions: group.calls,
          examples: [...group.alike.values()].slice(0, 3),
        }));
        expected.sort((a, b) => b.decisions - a.decisions || (a.examples[0] < b.examples[0] ? -1 : 1));

        const filter = { organizationId: 'org_1', from: START, to: START + asked.length };
        const now = replay(db, replayBy(pdp, after, 'current'), { filter, groupBy }, () => {});
        expect(now).toMatchObject({ decisions: asked.length, changed: counts, unjudged: [], recorded: null });
        expect(now.groups).toEqual(expected);
        expect(now.unchanged).toBe(asked.length - Object.values(counts).reduce((sum, count) => sum + count));
        expect(now.rules.map(({ id }) => id)).toEqual(
          [...new Set(expected.flatMap(({ ruleIds }) => ruleIds ?? []))].sort(),
        );

        const then = replay(db, replayBy(pdp, after, 'recorded'), { filter, groupBy }, () => {});
        expect(then).toMatchObject({ unchanged: asked.length, groups: [] });
        expect(then.recorded).toEqual({ identical: asked.length, different: 0, differences: [] });
        db.close();
      }),
      propertyRuns(RUNS),
    );
  },
  propertyTimeout(RUNS),
);

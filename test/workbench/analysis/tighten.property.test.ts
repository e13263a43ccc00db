/** Drafts of `policy tighten` against brute force: each logged call, and each mapping, asked of the oracle by the rules of the draft. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { inputDocument } from '../../../src/policy/input-document.ts';
import { createPdp } from '../../../src/policy/pdp.ts';
import { openDatabase } from '../../../src/store/db/database.ts';
import { applyDrafts } from '../../../src/workbench/analysis/drafts.ts';
import { findTightenSubject, tighten } from '../../../src/workbench/analysis/tighten.ts';
import { keySubjects, type World } from '../../../src/workbench/world/world.ts';
import { oracleDecision } from '../../policy/oracle.ts';
import { propertyRuns, propertyTimeout } from '../../policy/property-runs.ts';
import { logDecision } from '../../support/logged-decisions.ts';
import { catalog, mappingsIn, permits, worlds } from '../worlds.ts';

const RUNS = 300;
const START = Date.UTC(2026, 0, 31);
const pdp = createPdp();

const calls = fc.array(
  fc.record({
    keyId: fc.constantFrom('key_1', 'key_2', 'key_3'),
    model: fc.constantFrom('gpt-5', 'gpt', 'gpt-5-mini', 'azure/gpt-5', 'opus', '42', 'watch'),
    address: fc.constantFrom(null, '10.1.2.2', '10.1.2.3', '10.1.2.4', '2001:db8::1', '2001:db8::2'),
    /** Of the permitted candidates; the last one served. */
    places: fc.array(fc.nat(3), { maxLength: 2 }),
  }),
  { minLength: 1, maxLength: 12 },
);

function permittedNow(world: World, keyId: string, model: string, address: string | null): readonly string[] {
  const key = world.keys.get(keyId);
  if (key === undefined) throw new Error('no key');
  const subjects = keySubjects(world, key);
  const { candidates } = inputDocument('chat', address, subjects, catalog.resolve(model) ?? []);
  return oracleDecision({ action: 'chat', clientIp: address, subjects, candidates }).permitted;
}

const meets = (world: World, keyId: string, subjectId: string): boolean => {
  const key = world.keys.get(keyId);
  return key !== undefined && keySubjects(world, key).some(({ id }) => id === subjectId);
};

it(
  'a draft permits all that was served, no model or provider that never served, and nothing that the current rules do not',
  () => {
    const drafted = { some: 0, addresses: 0 };
    fc.assert(
      fc.property(
        ...[worlds, worlds, calls, fc.constantFrom('key_1', 'mem_1', 'grp_1'), fc.boolean(), fc.boolean(), fc.nat(3)],
        (before, other, someCalls, subjectId, addresses, areKnown, change) => {
          // Rules that changed altogether leave hardly any use.
          const now = change === 0 ? other : before;
          const asked = areKnown
            ? someCalls.map((call) => ({ ...call, address: call.address ?? '10.1.2.3' }))
            : someCalls;
          const db = openDatabase(':memory:', { create: true });
          const logged = asked.map(({ places, ...call }, index) => {
            const may = permittedNow(before, call.keyId, call.model, call.address);
            const targets = may.length === 0 ? [] : places.map((place) => may[place % may.length] ?? '');
            logDecision(db, before, { ...call, time: START + index, targets });
            return { ...call, targets };
          });
          const subject = findTightenSubject(now, subjectId);
          const use = logged.filter(({ keyId, model, address, targets }) => {
            const may = permittedNow(now, keyId, model, address);
            return (
              targets.length > 0 && meets(now, keyId, subjectId) && targets.every((target) => may.includes(target))
            );
          });
          const scope = { from: START, to: START + asked.length, addresses };
          const { calls: counted, draft, lost, notes } = tighten(db, pdp, now, subject, scope);
          db.close();
          expect({ counted, lost }).toEqual({ counted: use.length, lost: { calls: 0, decisionIds: [] } });
          if (use.length === 0) {
            expect(draft).toEqual([]);
            return;
          }
          const after = applyDrafts(now, draft);
          for (const { keyId, model, address, targets } of use) {
            expect(permittedNow(after, keyId, model, address)).toEqual(expect.arrayContaining([...targets]));
          }
          const used = new Set(use.flatMap(({ targets }) => targets));
          const models = new Set([...used].map((target) => target.slice(target.indexOf('/') + 1)));
          const providers = new Set([...used].map((target) => target.slice(0, target.indexOf('/'))));
          const isBound = addresses && use.every(({ address }) => address !== null);
          expect(notes.length).toBe(addresses && !isBound ? 1 : 0);
          drafted.some += 1;
          if (isBound) drafted.addresses += 1;
          for (const key of after.keys.values()) {
            const stored = now.keys.get(key.id);
            if (stored === undefined || !meets(now, key.id, subjectId)) continue;
            const [was, is] = [keySubjects(now, stored), keySubjects(after, key)];
            for (const mapping of mappingsIn(now)) {
              for (const address of [
                null,
                '10.1.2.1',
                '10.1.2.2',
                '10.1.2.3',
                '10.1.2.4',
                '10.1.2.5',
                '2001:db8::1',
                '2001:db8::2',
              ]) {
                if (!permits(is, mapping, address)) continue;
                expect(permits(was, mapping, address)).toBe(true);
                expect(mapping.custom).toBe(false);
                expect(providers).toContain(mapping.providerId);
                if (!mapping.outputModalities.includes('moderation')) expect(models).toContain(mapping.modelId);
                if (isBound) expect(use.map((call) => call.address)).toContain(address);
              }
            }
          }
        },
      ),
      propertyRuns(RUNS),
    );
    expect(drafted.some).toBeGreaterThan(0);
    expect(drafted.addresses).toBeGreaterThan(0);
  },
  propertyTimeout(RUNS),
);

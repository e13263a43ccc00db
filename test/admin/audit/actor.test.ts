import { describe, expect, it } from 'vitest';
import { changesRulesOf, seesAllKeys, seesKeyOf } from '../../../src/admin/audit/audit-trail.ts';
import { admin, cli, developer, ID, owner } from '../tenants.ts';

describe('an actor', () => {
  it('changes rules by its role: an owner of everyone, an admin of all but owners, a developer of no one', () => {
    const table = [cli, owner, admin, developer].map((actor) => [
      changesRulesOf(actor, 'owner'),
      changesRulesOf(actor, 'admin'),
      changesRulesOf(actor, 'developer'),
    ]);
    expect(table).toEqual([
      [true, true, true],
      [true, true, true],
      [false, true, true],
      [false, false, false],
    ]);
  });

  it('sees all keys unless it is a developer, who sees their own', () => {
    expect([cli, owner, admin, developer].map(seesAllKeys)).toEqual([true, true, true, false]);
    expect([admin, developer].map((actor) => seesKeyOf(actor, ID.owner))).toEqual([true, false]);
    expect(seesKeyOf(developer, ID.developer)).toBe(true);
  });
});

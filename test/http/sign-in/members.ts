// Members who sign in, made as their owner makes them.

import { setPassword } from '../../../src/admin/sign-in/sign-in.ts';
import { newMember } from '../../../src/admin/tenants/members.ts';
import { newId } from '../../../src/domain/id.ts';
import { hashPassword } from '../../../src/domain/identity.ts';
import { ManualClock } from '../../../src/domain/time.ts';
import type { Role } from '../../../src/store/db/tables.ts';
import { Browser } from '../../support/browser.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';

export const PAGES = '/oauth/interaction';
export const PASSWORD = 'correct horse battery';
/** Hashing takes a while. */
const hash = await hashPassword(PASSWORD);

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;

export interface SignInGateway extends TestGateway {
  readonly clock: ManualClock;
  /** A browser at an address of its own, so that no test takes from another one's rate. */
  browser(origin?: string): Browser;
  addMember(
    email: string,
    wanted?: { readonly name?: string; readonly role?: Role; readonly organizationId?: string },
  ): string;
  /** Actions of the audit log with their targets, oldest first, from the last call on. */
  audited(): string[];
}

/** A gateway whose clock stands still until a test moves it. */
export async function startSignIn(env: Readonly<Record<string, string>> = {}): Promise<SignInGateway> {
  const clock = new ManualClock(Date.now());
  const gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.1/32', ...env }, { clock });
  let address = 0;
  let seen = 0;
  const audited = (): string[] => {
    const rows = gateway.db.connection
      .prepare<[number], { seq: number; action: string }>('SELECT seq, action FROM audit WHERE seq > ? ORDER BY seq')
      .all(seen);
    seen = rows.at(-1)?.seq ?? seen;
    return rows.map(({ action }) => action);
  };
  audited();
  return {
    ...gateway,
    clock,
    browser(origin = gateway.origin) {
      address += 1;
      return new Browser(origin, { 'x-forwarded-for': `198.51.100.${address}` });
    },
    addMember(email, { name, role = 'developer', organizationId = gateway.firstRun.organizationId } = {}) {
      const id = newId('mem');
      const now = clock.now();
      gateway.db.transaction(() => {
        newMember(gateway.db, { id, organizationId, email, name: name ?? null, role }, now);
        setPassword(gateway.db, { kind: 'person', organizationId, memberId: id }, hash, now);
      });
      audited();
      return id;
    },
    audited,
  };
}

/** Signs in by e-mail and password, from the page on. */
export async function signIn(browser: Browser, email: string, password = PASSWORD) {
  await browser.get(`${PAGES}/sign-in`);
  return browser.submit(`${PAGES}/sign-in`, { email, password });
}

/** Whether the browser is signed in, by what the account page answers. */
export async function isSignedIn(browser: Browser): Promise<boolean> {
  const { status } = await browser.get(`${PAGES}/account`);
  return status === 200;
}

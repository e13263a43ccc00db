import type { Actor } from '../../admin/audit/audit-trail.ts';
import { boundsText, getNewKeyBounds, type NewKeyBounds } from '../../admin/keys/key-limits.ts';
import { createKey, listKeys } from '../../admin/keys/keys.ts';
import type { SecretWrite } from '../../admin/keys/new-secret.ts';
import { listProjects } from '../../admin/tenants/projects.ts';
import { invalidRequest } from '../../domain/errors.ts';
import { formatUsd, leftToSpend, parseUsd } from '../../domain/limits.ts';
import { DAY, formatTime } from '../../domain/time.ts';
import type { KeyRecord, ProjectRecord } from '../../generated/types.ts';
import type { Database } from '../../store/db/database.ts';
import { budgetsOfKey } from '../../store/tenants/budget-records.ts';
import { getKey } from '../../store/tenants/key-records.ts';
import { type Form, field } from '../pages/form.ts';
import { html, type SafeHtml } from '../pages/html.ts';
import type { Session } from '../state.ts';

/** Keys and projects among which a page lets people choose. */
const SHOWN = 100;

/** The value of the choice to make a key. */
const NEW = 'new';

const WINDOWS = { all: 'in total', day: 'per day', week: 'per week', month: 'per month' } as const;
type SpendWindow = keyof typeof WINDOWS;

const EXPIRIES: Readonly<Record<string, string>> = {
  '30': '30 days',
  '90': '90 days',
  '365': '1 year',
  '': 'no expiry',
};

/** The value of the longest lifetime that a new key can have. */
const LONGEST = 'longest';

/** A key, and what it can still spend now in pico-dollars; undefined: no limit applies. */
interface KeyChoice {
  readonly key: KeyRecord;
  readonly left: bigint | undefined;
}

/** Among what a person chooses. */
export interface KeyChoices {
  readonly keys: readonly KeyChoice[];
  readonly projects: readonly ProjectRecord[];
  /** Bounds of a key that they make. */
  readonly bounds: NewKeyBounds | undefined;
  /** Epoch ms. */
  readonly now: number;
}

/** The person's own keys that may be used, and the projects in which they can make one. @param now epoch ms */
export function listKeyChoices(db: Database, person: Actor & { readonly kind: 'person' }, now: number): KeyChoices {
  const { organizationId, memberId } = person;
  const { keys } = listKeys(db, person, { createdBy: memberId, limit: SHOWN }, now);
  const choices = keys.filter(({ status }) => status === 'active');
  return {
    keys: choices.map((key) => {
      const stored = getKey(db, organizationId, key.id);
      return { key, left: leftToSpend(stored, budgetsOfKey(db, stored), now) };
    }),
    projects: listProjects(db, person, { limit: SHOWN }).projects,
    bounds: getNewKeyBounds(db, person, now),
    now,
  };
}

/**
 * The id of the key that was chosen, or of the one that is made because of the choice. Whose it is is not checked.
 * @param applicationName names the new key @throws ApiError 400
 */
export function chosenKey(
  db: Database,
  person: Actor,
  form: Form,
  applicationName: string,
  write: SecretWrite,
): string {
  if (form.text('key') !== NEW) {
    if (form.text('limit').trim() === '') return form.text('key');
    throw invalidRequest('The spend limit is for a new key. Choose to create one, or leave the limit empty.');
  }
  const wanted = newKeyOf(form, applicationName);
  return createKey(db, person, wanted, { ...write, ...expiryOf(form, write.now) }).key.id;
}

const WRONG_LIMIT =
  'Enter the spend limit as an amount in USD such as 12.50, without a currency sign, at most 9000000.';

const isWindow = (text: string): text is SpendWindow => Object.hasOwn(WINDOWS, text);

/** The body that makes the key, as `KeyCreate`. @throws ApiError 400 */
function newKeyOf(form: Form, applicationName: string): object {
  const limit = limitOf(form);
  const window = form.text('window');
  if (!isWindow(window)) throw invalidRequest('Choose a limit period.');
  const period = { periodUsageLimit: limit, periodUsageDurationValue: 1, periodUsageDurationUnit: window };
  return {
    projectId: form.text('project'),
    description: `${applicationName} (OAuth)`,
    ...(limit === '' ? {} : window === 'all' ? { usageLimit: limit } : period),
  };
}

/** The amount that was entered; empty: none. @throws ApiError 400 */
function limitOf(form: Form): string {
  const limit = form.text('limit').trim();
  try {
    if (limit !== '') parseUsd(limit);
  } catch {
    throw invalidRequest(WRONG_LIMIT);
  }
  return limit;
}

/** Epoch ms; null: never; absent: as long as it can be. @throws ApiError 400 */
function expiryOf(form: Form, now: number): { readonly expiresAt?: number | null } {
  const days = form.text('days');
  if (days === LONGEST) return {};
  if (!Object.hasOwn(EXPIRIES, days)) throw invalidRequest('Choose a key lifetime.');
  return { expiresAt: days === '' ? null : now + Number(days) * DAY };
}

/** The lifetimes that a new key can have. */
function lifetimes({ bounds, now }: KeyChoices): Map<string, string> {
  const last = bounds?.most.expiresAt ?? null;
  if (last === null) return new Map(Object.entries(EXPIRIES));
  const shorter = Object.entries(EXPIRIES).filter(([days]) => days !== '' && now + Number(days) * DAY <= last);
  return new Map([...shorter, [LONGEST, `until ${formatTime(last)}`]]);
}

/** The choice of a key, or of how one is made. @param sent what was chosen before */
export function keyFields(choices: KeyChoices, sent: Form | undefined): SafeHtml {
  const { keys, projects, bounds } = choices;
  const days = lifetimes(choices);
  const rule = bounds === undefined ? undefined : boundsText(bounds);
  const usable = keys.find(({ key, left }) => key.state === 'active' && left !== 0n);
  const emptyLimit =
    rule === undefined ? 'Leave empty for no limit.' : 'Leave empty for the most that the key can have.';
  return html`${choice('key', 'Key', keyOptions(keys), sent?.text('key') ?? usable?.key.id ?? NEW)}
<fieldset class="stack">
<legend>If you create a new key</legend>
${rule !== undefined && html`<p class="hint">${rule}</p>`}
${choice('project', 'Project', new Map(projects.map(({ id, name }) => [id, name])), sent?.text('project'))}
${field({ name: 'limit', label: 'Spend limit in USD', type: 'text', autocomplete: 'off', required: false, hint: emptyLimit, value: sent?.text('limit') ?? '' })}
${choice('window', 'Limit period', new Map(Object.entries(WINDOWS)), sent?.text('window') ?? 'month')}
${choice('days', 'Key lifetime', days, sent?.text('days') ?? (days.has('90') ? '90' : LONGEST))}
</fieldset>`;
}

const keyOptions = (keys: readonly KeyChoice[]): Map<string, string> =>
  new Map([
    ...keys.map(({ key: { id, description, maskedToken }, left }): [string, string] => [
      id,
      [description, maskedToken, left === undefined ? 'no spend limit' : `${formatUsd(left)} USD left`]
        .filter((part) => part !== null && part !== '')
        .join(' · '),
    ]),
    [NEW, 'Create a new key for this application'],
  ]);

const choice = (
  name: string,
  label: string,
  options: ReadonlyMap<string, string>,
  chosen: string | undefined,
): SafeHtml =>
  html`<div class="field">
<label for="${name}">${label}</label>
<select id="${name}" name="${name}">
${[...options].map(([value, text]) =>
  value === chosen
    ? html`<option value="${value}" selected>${text}</option>`
    : html`<option value="${value}">${text}</option>`,
)}
</select>
</div>`;

/** The signed-in member as who acts. */
export const personOf = ({ member }: Session): Actor & { readonly kind: 'person' } => ({
  kind: 'person',
  organizationId: member.organizationId,
  memberId: member.id,
  role: member.role,
});

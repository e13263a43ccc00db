import type { Actor } from '../../../admin/audit/actor.ts';
import { createKey, listKeys } from '../../../admin/keys/keys.ts';
import type { SecretWrite } from '../../../admin/keys/new-secret.ts';
import { listProjects } from '../../../admin/tenants/projects.ts';
import { ApiError, invalidRequest } from '../../../domain/errors.ts';
import type { KeyRecord, ProjectRecord } from '../../../generated/types.ts';
import type { Database } from '../../../store/db/database.ts';
import { field } from '../../pages/fields.ts';
import type { Form } from '../../pages/form.ts';
import { html, type SafeHtml } from '../../pages/html.ts';

/** Keys and projects among which a page lets people choose. */
const SHOWN = 100;

const DAY = 86_400_000;

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

/** Among what a person chooses. */
export interface KeyChoices {
  readonly keys: readonly KeyRecord[];
  readonly projects: readonly ProjectRecord[];
}

/** The person's own keys that may be used, and the projects in which they can make one. @param now epoch ms */
export const listKeyChoices = (db: Database, person: Actor & { readonly kind: 'person' }, now: number): KeyChoices => ({
  keys: listKeys(db, person, { createdBy: person.memberId, limit: SHOWN }, now).keys.filter(
    ({ status }) => status === 'active',
  ),
  projects: listProjects(db, person, { limit: SHOWN }).projects,
});

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
  if (form.text('key') !== NEW) return form.text('key');
  const wanted = newKeyOf(form, applicationName);
  const expiresAt = expiryOf(form, write.now);
  try {
    return createKey(db, person, wanted, { ...write, expiresAt }).key.id;
  } catch (error) {
    if (error instanceof ApiError && error.param?.endsWith('sageLimit') === true) throw invalidRequest(WRONG_LIMIT);
    throw error;
  }
}

const WRONG_LIMIT =
  'Enter the spend limit as an amount in USD such as 12.50, without a currency sign, at most 9000000.';

const isWindow = (text: string): text is SpendWindow => Object.hasOwn(WINDOWS, text);

/** The body that makes the key, as `KeyCreate`. @throws ApiError 400 */
function newKeyOf(form: Form, applicationName: string): object {
  const limit = form.text('limit').trim();
  const window = form.text('window');
  if (!isWindow(window)) throw invalidRequest('Choose a limit period.');
  const period = { periodUsageLimit: limit, periodUsageDurationValue: 1, periodUsageDurationUnit: window };
  return {
    projectId: form.text('project'),
    description: `${applicationName} (OAuth)`,
    ...(limit === '' ? {} : window === 'all' ? { usageLimit: limit } : period),
  };
}

/** Epoch ms; null: never. @throws ApiError 400 */
function expiryOf(form: Form, now: number): number | null {
  const days = form.text('days');
  if (!Object.hasOwn(EXPIRIES, days)) throw invalidRequest('Choose a key lifetime.');
  return days === '' ? null : now + Number(days) * DAY;
}

/** The choice of a key, or of how one is made. @param sent what was chosen before */
export const keyFields = ({ keys, projects }: KeyChoices, sent: Form | undefined): SafeHtml =>
  html`${choice('key', 'Key', keyOptions(keys), sent?.text('key') ?? NEW)}
<fieldset class="stack">
<legend>If you create a new key</legend>
${choice('project', 'Project', new Map(projects.map(({ id, name }) => [id, name])), sent?.text('project'))}
${field({ name: 'limit', label: 'Spend limit in USD', type: 'text', autocomplete: 'off', required: false, hint: 'Leave empty for no limit.', value: sent?.text('limit') ?? '' })}
${choice('window', 'Limit period', new Map(Object.entries(WINDOWS)), sent?.text('window') ?? 'month')}
${choice('days', 'Key lifetime', new Map(Object.entries(EXPIRIES)), sent?.text('days') ?? '90')}
</fieldset>`;

const keyOptions = (keys: readonly KeyRecord[]): Map<string, string> =>
  new Map([
    [NEW, 'Create a new key for this application'],
    ...keys.map(({ id, description, maskedToken }): [string, string] => [
      id,
      [description, maskedToken].filter((part) => part !== null && part !== '').join(' · '),
    ]),
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

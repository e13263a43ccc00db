import { PASSWORD_LENGTH, passwordFault } from '../../../domain/password.ts';
import { field } from '../../pages/fields.ts';
import type { Form } from '../../pages/form.ts';
import { html, type SafeHtml } from '../../pages/html.ts';

/** Faults of a form, by its fields. */
export type Faults = Readonly<Record<string, string | undefined>>;

export const hasFaults = (faults: Faults): boolean => Object.values(faults).some((fault) => fault !== undefined);

/** The two fields of a password that is chosen. Length is not limited by the browser: it would cut what is pasted. */
export const newPasswordFields = (faults: Faults, required = true): SafeHtml => html`${field({
  name: 'password',
  label: 'New password',
  type: 'password',
  autocomplete: 'new-password',
  hint: `${PASSWORD_LENGTH.min} to ${PASSWORD_LENGTH.max} characters. A sentence is fine.`,
  fault: faults.password,
  required,
})}
${field({
  name: 'again',
  label: 'Confirm new password',
  type: 'password',
  autocomplete: 'new-password',
  fault: faults.again,
  required,
})}`;

/** What is wrong with those two. */
export function newPasswordFaults(form: Form, email: string): Faults {
  const password = passwordFault(form.text('password'), email);
  if (password !== undefined) return { password };
  return { again: form.text('again') === form.text('password') ? undefined : 'The passwords do not match.' };
}

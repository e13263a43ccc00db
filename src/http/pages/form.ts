import { isUtf8 } from 'node:buffer';
import { ApiError, invalidRequest } from '../../domain/errors.ts';
import { assertBodyType, readBody } from '../body.ts';
import { loadPlaceOf, type RequestContext } from '../state.ts';
import { html, type SafeHtml } from './html.ts';

/** The largest form: fields are short, and who sends it may be anyone. */
export const MAX_FORM_BYTES = 16_384;
const MAX_FIELDS = 64;

/** The fields of a form that was sent. */
export class Form {
  readonly #fields: URLSearchParams;

  constructor(fields: URLSearchParams) {
    this.#fields = fields;
  }

  /** Empty when it is missing. @throws ApiError 400 when it is given more than once */
  text(name: string): string {
    const [value = '', ...more] = this.#fields.getAll(name);
    if (more.length > 0) throw invalidRequest(`The field ${name} is given more than once.`, `/${name}`);
    return value;
  }
}

/** The body as a form of bounded size. @throws ApiError 413, 415, 400 */
export async function parseForm(ctx: RequestContext): Promise<Form> {
  const { req, res, state } = ctx;
  assertBodyType(req, 'application/x-www-form-urlencoded');
  const bytes = await readBody(req, res, loadPlaceOf(ctx), MAX_FORM_BYTES);
  state.bodyBytes = bytes.length;
  if (!isUtf8(bytes)) throw invalidRequest('The form is not UTF-8.');
  const text = bytes.toString('utf8');
  if (text.split('&', MAX_FIELDS + 1).length > MAX_FIELDS) {
    throw new ApiError(400, 'invalid_request', `The form has more than ${MAX_FIELDS} fields.`);
  }
  return new Form(new URLSearchParams(text));
}

interface Field {
  readonly name: string;
  readonly label: string;
  readonly type: 'text' | 'email' | 'password';
  readonly autocomplete: string;
  readonly value?: string;
  readonly hint?: string;
  /** Fault of the input that was sent. */
  readonly fault?: string | undefined;
  readonly required?: boolean;
  readonly maxLength?: number;
}

/** A labelled input, with its fault next to it. */
export function field({
  name,
  label,
  type,
  autocomplete,
  value = '',
  hint,
  fault,
  required = true,
  maxLength,
}: Field): SafeHtml {
  const described = [hint && `${name}-hint`, fault && `${name}-fault`].filter(Boolean).join(' ');
  return html`<div class="field">
<label for="${name}">${label}</label>
<input id="${name}" name="${name}" type="${type}" autocomplete="${autocomplete}" value="${value}"${
    required && html` required`
  }${maxLength !== undefined && html` maxlength="${maxLength}"`}${
    type === 'email' && html` autocapitalize="none" spellcheck="false"`
  }${fault && html` aria-invalid="true"`}${described !== '' && html` aria-describedby="${described}"`}>
${hint && html`<p class="hint" id="${name}-hint">${hint}</p>`}
${fault && html`<p class="fault" id="${name}-fault" role="alert">${fault}</p>`}
</div>`;
}

/** Alert for the fault of a form as a whole. */
export const alertBox = (text: string | undefined): SafeHtml =>
  html`${text && html`<p class="alert" role="alert">${text}</p>`}`;

const MAX_LENGTH = 2048;

/** A path of this listener. Browsers take `\` for `/`, so that `/\host` leads away as `//host` does. */
const LOCAL = /^\/(?:[!-.0-[\]-~][!-[\]-~]*)?$/;

/** The text when it leads nowhere but to this listener, else undefined. */
export const localPath = (text: string): string | undefined =>
  text.length <= MAX_LENGTH && LOCAL.test(text) ? text : undefined;

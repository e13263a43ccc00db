import { html, type SafeHtml } from './html.ts';

export interface Field {
  readonly name: string;
  readonly label: string;
  readonly type: 'text' | 'email' | 'password';
  readonly autocomplete: string;
  readonly value?: string;
  readonly hint?: string;
  /** What is wrong with what was sent. */
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

/** What went wrong with a form as a whole. */
export const alertBox = (text: string | undefined): SafeHtml =>
  html`${text && html`<p class="alert" role="alert">${text}</p>`}`;

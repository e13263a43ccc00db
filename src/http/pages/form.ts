import { isUtf8 } from 'node:buffer';
import { ApiError, invalidRequest } from '../../domain/errors.ts';
import { assertBodyType, readBody } from '../request/read-body.ts';
import { type AppContext, placeOf } from '../state.ts';

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
export async function parseForm(ctx: AppContext): Promise<Form> {
  const { req, res, state } = ctx;
  assertBodyType(req, 'application/x-www-form-urlencoded');
  const bytes = await readBody(req, res, placeOf(ctx), MAX_FORM_BYTES);
  state.bodyBytes = bytes.length;
  if (!isUtf8(bytes)) throw invalidRequest('The form is not UTF-8.');
  const text = bytes.toString('utf8');
  if (text.split('&', MAX_FIELDS + 1).length > MAX_FIELDS) {
    throw new ApiError(400, 'invalid_request', `The form has more than ${MAX_FIELDS} fields.`);
  }
  return new Form(new URLSearchParams(text));
}

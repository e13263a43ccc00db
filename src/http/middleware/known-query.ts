import { checkVisibleText } from '../../domain/check-shape.ts';
import { invalidRequest } from '../../domain/errors.ts';
import { plainText } from '../../lib/text.ts';
import type { AppMiddleware } from '../state.ts';

/** Characters of an unknown name that are repeated. */
const MAX_SHOWN = 64;

/**
 * Refuses a query parameter that the route does not take: ignored, a misspelt filter would show everything. Refuses a value that
 * cannot be read.
 * @param known the names that the route takes
 * @throws ApiError 400 that lists the parameters that there are
 */
export function knownQuery(known: readonly string[]): AppMiddleware {
  return (ctx, next) => {
    for (const [name, value] of ctx.state.query) {
      if (known.includes(name)) {
        checkVisibleText(value, `The query parameter ${name}`, `/${name}`);
        continue;
      }
      const taken = known.length === 0 ? 'this request takes none' : `this request takes ${known.join(', ')}`;
      const given = plainText(name).slice(0, MAX_SHOWN);
      throw invalidRequest(`The query parameter ${given} is not known: ${taken}.`, `/${given}`);
    }
    return next();
  };
}

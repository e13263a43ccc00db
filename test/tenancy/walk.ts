// One request by a caller of the first organization, with identifiers of the second in some places.
import { expect } from 'vitest';
import type { MasterTokens } from '../admin/tenants.ts';
import type { Answer } from '../http/master/management-server.ts';
import { dump, type Identifiers, type Organizations, send } from './organizations.ts';
import { nameOf, type Place, placesOf, type Route, requestOf } from './routes.ts';

export type Caller = Exclude<keyof MasterTokens, 'foreigner'>;
export const CALLERS: readonly Caller[] = ['owner', 'admin', 'developer'];

/** What stands in one place: something of the callers', or of the others', in one of the forms of its kind. */
export interface Choice {
  readonly whose: 'own' | 'foreign';
  /** Which of the kind's forms: by id, by e-mail; beyond the last, the first again. */
  readonly form: number;
}

const formOf = (identifiers: Identifiers, { kind }: Place, form: number): string => {
  const forms = identifiers[kind];
  return forms[form % forms.length] ?? '';
};

/** Status and text of an answer, with what was sent in these places as the names of the places. */
function comparable({ status, text }: Answer, places: readonly Place[], values: readonly string[]) {
  const replaced = values.reduce(
    (current, value, index) => current.replaceAll(value, `<${places[index]?.name}>`),
    text,
  );
  return { status, text: replaced.replaceAll(/req_[0-9a-f]{32}/g, 'req') };
}

/**
 * Asks what is to be refused: at least one place holds what belongs to the other organization. The answer is the one that it
 * would be if that existed nowhere, and it changes nothing in any table.
 */
export async function expectNotFound(
  organizations: Organizations,
  route: Route,
  caller: Caller,
  choices: readonly Choice[],
): Promise<void> {
  const { server, own, foreign, absent } = organizations;
  const places = placesOf(route);
  const valuesWith = (others: Identifiers): string[] =>
    places.map((place, index) => {
      const { whose, form } = choices[index] ?? { whose: 'own', form: 0 };
      return formOf(whose === 'own' ? own : others, place, form);
    });
  const isForeign = (where: Place['where']): boolean =>
    places.some((place, index) => place.where === where && choices[index]?.whose === 'foreign');

  const before = await dump(organizations);
  const ask = async (others: Identifiers) => {
    const values = valuesWith(others);
    const answer = await send(organizations, server.tokens[caller], requestOf(route, values));
    return comparable(answer, places, values);
  };
  const answer = await ask(foreign);
  expect(await dump(organizations), `${nameOf(route)} changed something`).toEqual(before);
  expect(answer, `${nameOf(route)} tells what exists elsewhere`).toEqual(await ask(absent));

  const allowed = isForeign('path') ? [404] : isForeign('body') ? (BODY_STATUSES[nameOf(route)] ?? [404]) : [200, 404];
  // What a developer, or an admin with an owner, may not do at all is refused before anything is looked for.
  const refused = caller === 'owner' ? [] : [403];
  expect([...allowed, ...refused], `${nameOf(route)} answers ${answer.text}`).toContain(answer.status);
}

/** Drafts and folders of rules are judged whole: what one of them names wrongly is a fault of the body, at its place. */
const BODY_STATUSES: Readonly<Record<string, readonly number[]>> = {
  'POST /v1/master/policy/evaluate': [400, 404],
  'POST /v1/master/policy/diff': [400],
  'POST /v1/master/policy/replay': [400, 404],
  'POST /v1/master/policy/plan': [400],
  'POST /v1/master/policy/apply': [400],
};

import { json, type Operation, type QueryParameter } from './operation.ts';

export const text = (description: string): QueryParameter => ({ description, type: 'string' });

export const PAGE = {
  limit: { description: '1 to 200, default 50.', type: 'integer' },
  cursor: text('`nextCursor` of the page before.'),
} as const satisfies Record<string, QueryParameter>;

const FAIL_ON_NEW_ACCESS = {
  failOnNewAccess: { description: 'Refuse it when it permits something new (409 `new_access`).', type: 'boolean' },
} as const satisfies Record<string, QueryParameter>;

export const READ = [401, 403, 404];
export const WRITE = [400, 401, 403, 404, 413, 415];
export const ANALYSIS = [401, 403, 404, 503, 504];

type Plural<Word extends string> = Word extends `${string}s` ? `${Word}es` : `${Word}s`;

function plural<Word extends string>(word: Word): Plural<Word>;
function plural(word: string): string {
  return `${word}${word.endsWith('s') ? 'es' : 's'}`;
}

/** The usual operations of a resource, by what they do, with the ids that they have. */
interface Usual<Base extends string> {
  readonly list: Operation<`list${Plural<Base>}`>;
  readonly create: Operation<`create${Base}`>;
  readonly get: Operation<`get${Base}`>;
  readonly change: Operation<`change${Base}`>;
  readonly delete: Operation<`delete${Base}`>;
}

type JudgedWrite = 'create' | 'change' | 'delete';

/** A resource with the usual operations. */
interface Resource<Can extends keyof Usual<string>, Base extends string> {
  readonly tag: string;
  /** Singular, as it begins a sentence. */
  readonly name: string;
  /** Name as it appears in the ids of its operations. */
  readonly idBase: Base;
  readonly path: string;
  /** The last part of the path of one of them. */
  readonly part?: string;
  readonly query?: Readonly<Record<string, QueryParameter>>;
  /** Writes that are judged for the access that they add (`widens`), and that a parameter of the query can refuse for it. */
  readonly judged?: readonly JudgedWrite[];
  readonly can: readonly Can[];
  /** Notes on an operation besides its summary. */
  readonly notes?: Readonly<Partial<Record<keyof Usual<string>, string>>>;
  readonly schemas: {
    readonly answer: string;
    readonly list: string;
    readonly create?: string;
    readonly patch?: string;
    /**
     * Description of the thing created, changed or deleted, where it adds something: also access that it newly permits, for
     * which it can be refused.
     */
    readonly created?: string;
    readonly changed?: string;
    readonly deleted?: string;
  };
}

/** The usual operations that a resource has. */
export function operationsOf<const Can extends keyof Usual<string>, const Base extends string>(
  resource: Resource<Can, Base>,
): Usual<Base>[Can][] {
  const { tag, name, idBase, path, part = '{id}', can, notes = {}, schemas, query = {} } = resource;
  const one = `${path}/${part}`;
  const single = `${/^[aeiou]/i.test(name) ? 'an' : 'a'} ${name.toLowerCase()}`;
  const common = { tag, key: 'master' } as const;
  const isJudged = (write: JudgedWrite): boolean => resource.judged?.includes(write) === true;
  const flagOf = (write: JudgedWrite) => (isJudged(write) ? { query: FAIL_ON_NEW_ACCESS } : {});
  const all: Usual<Base> = {
    list: {
      ...common,
      method: 'get',
      path,
      id: `list${plural(idBase)}`,
      summary: `List ${plural(name.toLowerCase())}`,
      query: { ...PAGE, ...query },
      answer: json(schemas.list, 'A page, newest first.'),
      errors: [400, ...READ],
    },
    create: {
      ...common,
      method: 'post',
      path,
      id: `create${idBase}`,
      summary: `Make ${single}`,
      request: schemas.create ?? '',
      ...flagOf('create'),
      answer: json(schemas.created ?? schemas.answer, 'It is made.', 201),
      errors: schemas.created === undefined && !isJudged('create') ? WRITE : [...WRITE, 409],
    },
    get: {
      ...common,
      method: 'get',
      path: one,
      id: `get${idBase}`,
      summary: `One ${name.toLowerCase()}`,
      answer: json(schemas.answer, 'As it is.'),
      errors: READ,
    },
    change: {
      ...common,
      method: 'patch',
      path: one,
      id: `change${idBase}`,
      summary: `Change ${single}`,
      request: schemas.patch ?? '',
      ...flagOf('change'),
      answer: json(schemas.changed ?? schemas.answer, 'As it is now.'),
      errors: schemas.changed === undefined && !isJudged('change') ? WRITE : [...WRITE, 409],
    },
    delete: {
      ...common,
      method: 'delete',
      path: one,
      id: `delete${idBase}`,
      summary: `Delete ${single}`,
      ...(schemas.deleted === undefined ? flagOf('delete') : { query: FAIL_ON_NEW_ACCESS }),
      answer: json(schemas.deleted ?? 'Deletion', 'It is gone.'),
      errors: schemas.deleted === undefined && !isJudged('delete') ? READ : [400, ...READ, 409],
    },
  };
  return can.map((each) => ({ ...all[each], ...(notes[each] === undefined ? {} : { description: notes[each] }) }));
}

export const ALL = ['list', 'create', 'get', 'change', 'delete'] as const;

export const WRITES = ['create', 'change', 'delete'] as const;

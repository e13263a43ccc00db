import usageQuery from '../../../schemas/admin/usage-query.json' with { type: 'json' };
import { json, type Listener, type Operation, type QueryParameter } from './operation.ts';

const text = (description: string): QueryParameter => ({ description, type: 'string' });

const PAGE = {
  limit: { description: '1 to 200, default 50.', type: 'integer' },
  cursor: text('`nextCursor` of the page before.'),
} as const satisfies Record<string, QueryParameter>;

const READ = [401, 403, 404];
const WRITE = [400, 401, 403, 404, 413, 415];

type Action = 'list' | 'create' | 'get' | 'change' | 'delete';

/** A resource with the usual operations. */
interface Resource {
  readonly tag: string;
  /** Singular, as it begins a sentence; its schemas begin with it, without blanks. */
  readonly name: string;
  readonly plural?: string;
  readonly path: string;
  /** The last part of the path of one of them. */
  readonly part?: string;
  readonly query?: Readonly<Record<string, QueryParameter>>;
  readonly can: readonly Action[];
  /** What there is to know of an operation besides its summary. */
  readonly notes?: Readonly<Partial<Record<Action, string>>>;
  readonly schemas: {
    readonly answer: string;
    readonly list: string;
    readonly create?: string;
    readonly patch?: string;
    /** Of a change, where it says more. */
    readonly changed?: string;
  };
  readonly idBase?: string;
}

function operationsOf(resource: Resource): Operation[] {
  const { tag, name, path, part = '{id}', can, notes = {}, schemas, query = {} } = resource;
  const plural = resource.plural ?? `${name}s`;
  const base = resource.idBase ?? pascal(name);
  const basePlural = resource.idBase === undefined ? pascal(plural) : `${resource.idBase}s`;
  const one = `${path}/${part}`;
  const single = `${/^[aeiou]/i.test(name) ? 'an' : 'a'} ${name.toLowerCase()}`;
  const common = { tag, key: 'master' } as const;
  const all: Record<Action, Operation> = {
    list: {
      ...common,
      method: 'get',
      path,
      id: `list${basePlural}`,
      summary: `List ${plural.toLowerCase()}`,
      query: { ...PAGE, ...query },
      answer: json(schemas.list, 'A page, newest first.'),
      errors: [400, ...READ],
    },
    create: {
      ...common,
      method: 'post',
      path,
      id: `create${base}`,
      summary: `Make ${single}`,
      request: schemas.create ?? '',
      answer: json(schemas.answer, 'It is made.', 201),
      errors: WRITE,
    },
    get: {
      ...common,
      method: 'get',
      path: one,
      id: `get${base}`,
      summary: `One ${name.toLowerCase()}`,
      answer: json(schemas.answer, 'As it is.'),
      errors: READ,
    },
    change: {
      ...common,
      method: 'patch',
      path: one,
      id: `change${base}`,
      summary: `Change ${single}`,
      request: schemas.patch ?? '',
      answer: json(schemas.changed ?? schemas.answer, 'As it is now.'),
      errors: WRITE,
    },
    delete: {
      ...common,
      method: 'delete',
      path: one,
      id: `delete${base}`,
      summary: `Delete ${single}`,
      answer: json('Deletion', 'It is gone.'),
      errors: READ,
    },
  };
  return can.map((each) => ({ ...all[each], ...(notes[each] === undefined ? {} : { description: notes[each] }) }));
}

const pascal = (words: string): string =>
  words.replaceAll(/(?:^|[ -])(\w)/g, (_, letter: string) => letter.toUpperCase());

const ALL = ['list', 'create', 'get', 'change', 'delete'] as const;

const RULES = {
  answer: 'RuleAnswer',
  list: 'RuleList',
  create: 'RuleCreate',
  patch: 'RulePatch',
  changed: 'RuleChangeAnswer',
};
const rules = (path: string, idBase: string, of: string): Operation[] =>
  operationsOf({
    tag: 'IAM rules',
    name: 'Rule',
    idBase,
    path,
    part: '{ruleId}',
    can: ALL,
    notes: { get: 'With its warnings as they stand now.' },
    schemas: RULES,
  }).map((operation) => ({ ...operation, summary: `${operation.summary} of ${of}` }));

const resources: readonly Resource[] = [
  {
    tag: 'Keys',
    name: 'Key',
    path: '/v1/master/keys',
    query: { projectId: text('Only of this project.'), kind: text('`regular` (default) or `playground`.') },
    can: ALL,
    notes: { create: 'The token is in this answer alone.', get: 'With its state and what it spent.' },
    schemas: { answer: 'KeyAnswer', list: 'KeyList', create: 'KeyCreate', patch: 'KeyPatch' },
  },
  {
    tag: 'Keys',
    name: 'Master key',
    path: '/v1/master/master-keys',
    can: ALL,
    notes: {
      list: 'With their last use. Developers see those that act for them.',
      create:
        'It acts for the same member as the key that asks. The token is in this answer alone. An organization has at most 10.',
      delete: 'Also the one that asks.',
    },
    schemas: { answer: 'MasterKeyAnswer', list: 'MasterKeyList', create: 'MasterKeyCreate', patch: 'MasterKeyPatch' },
  },
  {
    tag: 'Keys',
    name: 'Platform key',
    path: '/v1/master/platform-keys',
    query: { projectId: text('Only of this project.') },
    can: ['list', 'create', 'get', 'delete'],
    notes: {
      list: 'Their tokens begin with `sk_`, and make no gateway calls.',
      create: 'The token is in this answer alone.',
    },
    schemas: { answer: 'PlatformKeyAnswer', list: 'PlatformKeyList', create: 'PlatformKeyCreate' },
  },
  {
    tag: 'Organization',
    name: 'Project',
    path: '/v1/master/projects',
    can: ALL,
    notes: {
      list: 'Every role may.',
      create: 'An organization has at most 100.',
      get: 'Every role may.',
      delete:
        'Its keys are accepted no more, and the provider keys that are for it alone are removed. The last one stays.',
    },
    schemas: { answer: 'ProjectAnswer', list: 'ProjectList', create: 'ProjectCreate', patch: 'ProjectPatch' },
  },
  {
    tag: 'Organization',
    name: 'Member',
    path: '/v1/master/members',
    part: '{member}',
    can: ['list', 'get', 'change', 'delete'],
    notes: {
      change: 'Admins neither change owners nor make them. The last owner stays one.',
      delete: 'Their keys are disabled, their master keys end, and their invitations are revoked.',
    },
    schemas: { answer: 'MemberAnswer', list: 'MemberList', patch: 'MemberPatch' },
  },
  {
    tag: 'Organization',
    name: 'Invitation',
    path: '/v1/master/invitations',
    can: ['list', 'create', 'get', 'delete'],
    notes: {
      list: 'Each is `pending`, `accepted`, `revoked` or `expired`.',
      create:
        'It can be accepted for `ttl`: 7 days by default, 30 at most. The token is in this answer alone. Members and pending invitations together are at most 1,000.',
      delete: 'It is revoked, and stays in the list.',
    },
    schemas: { answer: 'InvitationAnswer', list: 'InvitationList', create: 'InvitationCreate' },
  },
  {
    tag: 'Providers',
    name: 'Provider key',
    path: '/v1/master/provider-keys',
    query: { provider: text('Only of this provider.') },
    can: ALL,
    notes: {
      create: 'Stored encrypted; no answer holds the token. An organization has at most 100.',
      get: 'With a mask of its secret.',
      change:
        'All but the provider; `position` moves it among those of its provider. A `baseUrl` on another host needs the `token` again: a stored secret is sent nowhere else.',
      delete: 'Its secret is forgotten.',
    },
    schemas: {
      answer: 'ProviderKeyAnswer',
      list: 'ProviderKeyList',
      create: 'ProviderKeyCreate',
      patch: 'ProviderKeyPatch',
    },
  },
  {
    tag: 'Providers',
    name: 'Custom provider',
    path: '/v1/master/custom-providers',
    can: ALL,
    notes: {
      create: 'An organization has at most 50.',
      change:
        'All but the name. While it has provider keys it stays on its host: a stored secret is sent nowhere else.',
      delete: 'Its models and provider keys go with it.',
    },
    schemas: {
      answer: 'CustomProviderAnswer',
      list: 'CustomProviderList',
      create: 'CustomProviderCreate',
      patch: 'CustomProviderPatch',
    },
  },
  {
    tag: 'Providers',
    name: 'Custom model',
    path: '/v1/master/custom-models',
    query: { customProviderId: text('Only of this provider.') },
    can: ALL,
    notes: {
      create:
        'Prices are decimal strings: `inputPricePerMillion` and `outputPricePerMillion` (USD per million tokens), or all of `pricing` (USD per token). An organization has at most 500.',
      change: 'All but the provider and the model; prices that are not named stay.',
    },
    schemas: {
      answer: 'CustomModelAnswer',
      list: 'CustomModelList',
      create: 'CustomModelCreate',
      patch: 'CustomModelPatch',
    },
  },
];

const NULL_REMOVES = '`null` removes one.';
const budget = (path: string, id: string, of: string, description = NULL_REMOVES): Operation[] => [
  {
    method: 'get',
    path,
    id: `get${id}`,
    tag: 'Budgets',
    summary: `What the keys of ${of} may spend together, and have spent`,
    key: 'master',
    answer: json('BudgetAnswer', 'As it is.'),
    errors: [...READ, 404],
  },
  {
    method: 'patch',
    path,
    id: `change${id}`,
    tag: 'Budgets',
    summary: `Set or remove the limits that the keys of ${of} share`,
    description,
    key: 'master',
    request: 'BudgetPatch',
    answer: json('BudgetAnswer', 'As it is now.'),
    errors: [...WRITE, 404],
  },
];

/** Of what analyses name: what can be called, or also what cannot be for lack of a credential. */
const WITHOUT_CREDENTIAL = {
  withoutCredential: {
    description: 'Also what the rules permit and cannot be called, for lack of a credential.',
    type: 'boolean',
  },
} as const;

const ANALYSIS = [401, 403, 404, 503, 504];

const singles: readonly Operation[] = [
  {
    method: 'get',
    path: '/v1/master/budgets',
    id: 'listBudgets',
    tag: 'Budgets',
    summary: 'The budgets that have a limit',
    description: 'With state, spend and reset. For owners and admins.',
    key: 'master',
    query: PAGE,
    answer: json('BudgetList', 'A page, by their ids.'),
    errors: [400, 401, 403],
  },
  {
    method: 'get',
    path: '/v1/master/organization',
    id: 'getOrganization',
    tag: 'Organization',
    summary: 'The organization',
    description: 'Name and plan. Every role may.',
    key: 'master',
    answer: json('OrganizationAnswer', 'As it is.'),
    errors: READ,
  },
  {
    method: 'patch',
    path: '/v1/master/organization',
    id: 'changeOrganization',
    tag: 'Organization',
    summary: 'Change the organization',
    description: 'For owners only.',
    key: 'master',
    request: 'OrganizationPatch',
    answer: json('OrganizationAnswer', 'As it is now.'),
    errors: WRITE,
  },
  {
    method: 'post',
    path: '/v1/master/invitations/accept',
    id: 'acceptInvitation',
    tag: 'Organization',
    summary: 'Become a member by the token of an invitation',
    description: 'The token in the body is all that is needed, and is accepted once.',
    request: 'InvitationAccept',
    answer: json('MemberAnswer', 'The new member.', 201),
    errors: [400, 404, 413, 415, 429],
  },
  {
    method: 'get',
    path: '/v1/master/keys/{id}/access',
    id: 'getKeyAccess',
    tag: 'Policy',
    summary: 'Everything that a key reaches, exactly',
    key: 'master',
    query: WITHOUT_CREDENTIAL,
    answer: json('AccessReport', 'Models and providers, from where, and the rules that decide it.'),
    errors: [400, ...ANALYSIS],
  },
  {
    method: 'post',
    path: '/v1/master/policy/evaluate',
    id: 'evaluatePolicy',
    tag: 'Policy',
    summary: 'How a request is decided, and why',
    description:
      'By the rules of a stored `key`, or by draft `rules`. The outcome is `not_found` where no provider has a credential.',
    key: 'master',
    request: 'EvaluateRequest',
    answer: json('Explanation', 'The decision with all that led to it.'),
    errors: [400, ...ANALYSIS],
  },
  {
    method: 'post',
    path: '/v1/master/policy/diff',
    id: 'diffPolicy',
    tag: 'Policy',
    summary: 'What draft rules would change, and for which keys',
    key: 'master',
    query: WITHOUT_CREDENTIAL,
    request: 'DraftRules',
    answer: json('AccessDiff', 'Every cell that flips.'),
    errors: [400, ...ANALYSIS],
  },
  {
    method: 'get',
    path: '/v1/master/usage',
    id: 'getUsage',
    tag: 'Usage',
    summary: 'Sums of calls, tokens and cost',
    description:
      "Made outside the serving thread. Names stand next to ids. Developers see their own keys. A CSV's next cursor is in the header `x-next-cursor`.",
    key: 'master',
    querySchema: usageQuery,
    answer: {
      status: 200,
      description: 'The report.',
      content: { 'application/json': 'UsageReport', 'text/csv': 'text' },
    },
    errors: [400, ...ANALYSIS],
  },
  {
    method: 'get',
    path: '/v1/master/audit',
    id: 'listAudit',
    tag: 'Audit',
    summary: 'Who changed what',
    description:
      'With the states before and after; of a long list of a rule that was changed, what it lost and gained. For owners and admins.',
    key: 'master',
    query: {
      ...PAGE,
      action: text('Only this action, such as `key.create`; one that there is not is 400 and names them all.'),
      targetId: text('Only what was done to this.'),
      from: text('Begin, inclusive: a date (its midnight, UTC) or an RFC 3339 time.'),
      to: text('End: a date (that day is included) or an RFC 3339 time (exclusive).'),
    },
    answer: json('AuditList', 'A page, newest first.'),
    errors: [400, 401, 403],
  },
  {
    method: 'get',
    path: '/metrics',
    id: 'getMetrics',
    tag: 'Operation',
    summary: 'Metrics for Prometheus',
    key: 'metrics',
    answer: { status: 200, description: 'Prometheus text.', content: { 'text/plain': 'text' } },
    errors: [401, 403],
  },
];

export const management: Listener = {
  title: 'Portcullis management',
  description: 'The master API: keys, IAM rules, organization, providers, policy, usage, audit.',
  tags: {
    Keys: 'Gateway keys, master keys, platform keys.',
    'IAM rules':
      'Of keys, members and the organization. In a change the named fields of `ruleValue` replace, null removes one, and a list is replaced as a whole; another type needs a whole value. `failOnNewAccess: true` refuses a change that permits what was not permitted (409 `new_access`).',
    Organization: 'The organization, its projects, members and invitations.',
    Budgets: 'Spend limits that all keys of a member, a project or the organization share.',
    Providers: 'Credentials, providers and models of the organization.',
    Policy: 'What the rules mean.',
    Usage: 'Reports.',
    Audit: 'The log of changes.',
    Operation: 'Health, metrics and description.',
  },
  operations: [
    ...resources.flatMap(operationsOf),
    ...rules('/v1/master/keys/{id}/iam', 'KeyRule', 'a key'),
    ...rules('/v1/master/members/{member}/iam', 'MemberRule', 'a member'),
    ...rules('/v1/master/organization/iam', 'OrganizationRule', 'the organization'),
    ...budget('/v1/master/members/{member}/budget', 'MemberBudget', 'a member'),
    ...budget('/v1/master/projects/{id}/budget', 'ProjectBudget', 'a project'),
    ...budget(
      '/v1/master/organization/budget',
      'OrganizationBudget',
      'the organization',
      `${NULL_REMOVES} For owners only.`,
    ),
    ...singles,
  ],
};

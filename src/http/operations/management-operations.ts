import call from '../../../schemas/admin/call.json' with { type: 'json' };
import refusedRequest from '../../../schemas/admin/refused-request.json' with { type: 'json' };
import usage from '../../../schemas/admin/usage.json' with { type: 'json' };
import { json, type Listener, type Operation, type QueryParameter } from './operation.ts';

const text = (description: string): QueryParameter => ({ description, type: 'string' });

const PAGE = {
  limit: { description: '1 to 200, default 50.', type: 'integer' },
  cursor: text('`nextCursor` of the page before.'),
} as const satisfies Record<string, QueryParameter>;

const FAIL_ON_NEW_ACCESS = {
  failOnNewAccess: { description: 'Refuse it when it permits something new (409 `new_access`).', type: 'boolean' },
} as const satisfies Record<string, QueryParameter>;

const READ = [401, 403, 404];
const WRITE = [400, 401, 403, 404, 413, 415];

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

/** A resource with the usual operations. */
interface Resource<Can extends keyof Usual<string>, Base extends string> {
  readonly tag: string;
  /** Singular, as it begins a sentence. */
  readonly name: string;
  /** The same as it stands in the ids of its operations. */
  readonly idBase: Base;
  readonly path: string;
  /** The last part of the path of one of them. */
  readonly part?: string;
  readonly query?: Readonly<Record<string, QueryParameter>>;
  readonly can: readonly Can[];
  /** What there is to know of an operation besides its summary. */
  readonly notes?: Readonly<Partial<Record<keyof Usual<string>, string>>>;
  readonly schemas: {
    readonly answer: string;
    readonly list: string;
    readonly create?: string;
    readonly patch?: string;
    /** Of what was made, changed or deleted, where it says more: also what it newly permits, for which it can be refused. */
    readonly created?: string;
    readonly changed?: string;
    readonly deleted?: string;
  };
}

function operationsOf<const Can extends keyof Usual<string>, const Base extends string>(
  resource: Resource<Can, Base>,
): Usual<Base>[Can][] {
  const { tag, name, idBase, path, part = '{id}', can, notes = {}, schemas, query = {} } = resource;
  const one = `${path}/${part}`;
  const single = `${/^[aeiou]/i.test(name) ? 'an' : 'a'} ${name.toLowerCase()}`;
  const common = { tag, key: 'master' } as const;
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
      answer: json(schemas.created ?? schemas.answer, 'It is made.', 201),
      errors: schemas.created === undefined ? WRITE : [...WRITE, 409],
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
      answer: json(schemas.changed ?? schemas.answer, 'As it is now.'),
      errors: schemas.changed === undefined ? WRITE : [...WRITE, 409],
    },
    delete: {
      ...common,
      method: 'delete',
      path: one,
      id: `delete${idBase}`,
      summary: `Delete ${single}`,
      ...(schemas.deleted === undefined ? {} : { query: FAIL_ON_NEW_ACCESS }),
      answer: json(schemas.deleted ?? 'Deletion', 'It is gone.'),
      errors: schemas.deleted === undefined ? READ : [400, ...READ, 409],
    },
  };
  return can.map((each) => ({ ...all[each], ...(notes[each] === undefined ? {} : { description: notes[each] }) }));
}

const ALL = ['list', 'create', 'get', 'change', 'delete'] as const;

const RULES = {
  answer: 'RuleAnswer',
  list: 'RuleList',
  create: 'RuleCreateRequest',
  created: 'RuleCreateAnswer',
  patch: 'RulePatch',
  changed: 'RuleChangeAnswer',
  deleted: 'RuleDeletion',
};
const rules = <const Base extends string>(path: string, idBase: Base, of: string) => [
  ...operationsOf({
    tag: 'IAM rules',
    name: 'Rule',
    idBase,
    path,
    part: '{ruleId}',
    can: ALL,
    notes: { get: 'With its warnings as they stand now.' },
    schemas: RULES,
  }).map((operation) => ({ ...operation, summary: `${operation.summary} of ${of}` })),
  evidence(`${path}/{ruleId}/evidence`, `get${idBase}Evidence`, of),
];

const evidence = <const Id extends string>(path: string, id: Id, of: string): Operation<Id> => ({
  method: 'get',
  path,
  id,
  tag: 'IAM rules',
  summary: `What a rule of ${of} would have changed in mode \`report\``,
  description: 'Decisions that name it in their shadow. Made outside the serving thread.',
  key: 'master',
  query: PAGE,
  answer: json('RuleEvidence', 'A page of decisions, newest first, with the rule.'),
  errors: [400, ...ANALYSIS],
});

const resources = [
  ...operationsOf({
    tag: 'Keys',
    name: 'Key',
    idBase: 'Key',
    path: '/v1/master/keys',
    query: { projectId: text('Only of this project.'), kind: text('`regular` (default) or `playground`.') },
    can: ALL,
    notes: { create: 'The token is in this answer alone.', get: 'With its state and what it spent.' },
    schemas: { answer: 'KeyAnswer', list: 'KeyList', create: 'KeyCreate', patch: 'KeyPatch' },
  }),
  ...operationsOf({
    tag: 'Keys',
    name: 'Master key',
    idBase: 'MasterKey',
    path: '/v1/master/master-keys',
    can: ALL,
    notes: {
      list: 'With their last use. Developers see those that act for them.',
      create:
        'It acts for the same member as the key that asks. The token is in this answer alone. An organization has at most 10.',
      delete: 'Also the one that asks.',
    },
    schemas: { answer: 'MasterKeyAnswer', list: 'MasterKeyList', create: 'MasterKeyCreate', patch: 'MasterKeyPatch' },
  }),
  ...operationsOf({
    tag: 'Keys',
    name: 'Platform key',
    idBase: 'PlatformKey',
    path: '/v1/master/platform-keys',
    query: { projectId: text('Only of this project.') },
    can: ['list', 'create', 'get', 'delete'],
    notes: {
      list: 'Their tokens begin with `sk_`, and make no gateway calls.',
      create: 'The token is in this answer alone.',
    },
    schemas: { answer: 'PlatformKeyAnswer', list: 'PlatformKeyList', create: 'PlatformKeyCreate' },
  }),
  ...operationsOf({
    tag: 'Organization',
    name: 'Project',
    idBase: 'Project',
    path: '/v1/master/projects',
    can: ALL,
    notes: {
      list: 'Every role may.',
      create: 'An organization has at most 100.',
      get: 'Every role may.',
      delete:
        'Its keys are accepted no more, and the provider keys and aliases that are for it alone are removed. The last one stays.',
    },
    schemas: { answer: 'ProjectAnswer', list: 'ProjectList', create: 'ProjectCreate', patch: 'ProjectPatch' },
  }),
  ...operationsOf({
    tag: 'Organization',
    name: 'Member',
    idBase: 'Member',
    path: '/v1/master/members',
    part: '{member}',
    can: ['list', 'get', 'change', 'delete'],
    notes: {
      change: 'Admins neither change owners nor make them. The last owner stays one.',
      delete: 'Their keys are disabled, their master keys end, and their invitations are revoked.',
    },
    schemas: { answer: 'MemberAnswer', list: 'MemberList', patch: 'MemberPatch' },
  }),
  ...operationsOf({
    tag: 'Groups',
    name: 'Group',
    idBase: 'Group',
    path: '/v1/master/groups',
    can: ALL,
    notes: {
      list: 'Without those who are in them.',
      create: 'Nobody is in it. An organization has at most 200.',
      get: 'With all members and keys that are in it.',
      change:
        'Also who is in it, from the next call on: at most 500 members and keys, each in at most 20 groups. `widens` says what that newly permits.',
      delete: 'Its rules bind nobody any more; `widens` says what that newly permits.',
    },
    schemas: {
      answer: 'GroupAnswer',
      list: 'GroupList',
      create: 'GroupCreate',
      patch: 'GroupPatch',
      changed: 'GroupChangeAnswer',
      deleted: 'GroupDeletion',
    },
  }),
  ...operationsOf({
    tag: 'Organization',
    name: 'Invitation',
    idBase: 'Invitation',
    path: '/v1/master/invitations',
    can: ['list', 'create', 'get', 'delete'],
    notes: {
      list: 'Each is `pending`, `accepted`, `revoked` or `expired`.',
      create:
        'It can be accepted for `ttl`: 7 days by default, 30 at most. The token is in this answer alone. Members and pending invitations together are at most 1,000.',
      delete: 'It is revoked, and stays in the list.',
    },
    schemas: { answer: 'InvitationAnswer', list: 'InvitationList', create: 'InvitationCreate' },
  }),
  ...operationsOf({
    tag: 'Providers',
    name: 'Provider key',
    idBase: 'ProviderKey',
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
  }),
  ...operationsOf({
    tag: 'Providers',
    name: 'Custom provider',
    idBase: 'CustomProvider',
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
  }),
  ...operationsOf({
    tag: 'Providers',
    name: 'Custom model',
    idBase: 'CustomModel',
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
  }),
  ...operationsOf({
    tag: 'Providers',
    name: 'Tag set',
    idBase: 'TagSet',
    path: '/v1/master/tag-sets',
    can: ALL,
    notes: {
      create:
        'The tags of one target; rules of the types `allow_tags` and `deny_tags` ask for them from the next call on. An organization has at most 500.',
      change: 'All the tags that stand there from now on.',
    },
    schemas: { answer: 'TagSetAnswer', list: 'TagSetList', create: 'TagSetCreate', patch: 'TagSetPatch' },
  }),
  ...operationsOf({
    tag: 'Providers',
    name: 'Alias',
    idBase: 'Alias',
    path: '/v1/master/aliases',
    query: { projectId: text('Only those of this project.') },
    can: ALL,
    notes: {
      list: 'Those of the organization and of its projects, each marked by `projectId`. Every role may.',
      create:
        'A name for an ordered list of models, which requests can state as `model` from the next one on. It opens nothing: rules judge the models. An organization has at most 200.',
      get: 'With its warnings as they stand now. Every role may.',
      change: 'Other models or weights; the number of weights is that of the models.',
      delete: 'Its name means what it would without it.',
    },
    schemas: { answer: 'AliasAnswer', list: 'AliasList', create: 'AliasCreate', patch: 'AliasPatch' },
  }),
];

const NULL_REMOVES = '`null` removes one.';
const budget = <const Base extends string>(
  path: string,
  base: Base,
  of: string,
  description = NULL_REMOVES,
): Operation<`get${Base}` | `change${Base}`>[] => [
  {
    method: 'get',
    path,
    id: `get${base}`,
    tag: 'Budgets',
    summary: `What the keys of ${of} may spend together, and have spent`,
    key: 'master',
    answer: json('BudgetAnswer', 'As it is.'),
    errors: [...READ, 404],
  },
  {
    method: 'patch',
    path,
    id: `change${base}`,
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

/** Of policy folders. */
const PRUNE = {
  prune: {
    description: 'Also remove the rules that no folder states, of everyone in the organization.',
    type: 'boolean',
  },
} as const;

const ANALYSIS = [401, 403, 404, 503, 504];

const logged = <const Base extends 'Call' | 'Decision'>(
  name: Lowercase<Base>,
  base: Base,
  description: string,
): Operation<`list${Base}s` | `get${Base}`>[] => [
  {
    method: 'get',
    path: `/v1/master/${name}s`,
    id: `list${base}s`,
    tag: 'Log',
    summary: `Search for ${name}s`,
    description: `${description} Made outside the serving thread. Developers see those of their own keys.`,
    key: 'master',
    querySchema: call.$defs.query,
    answer: json(`${base}List`, 'A page, newest first.'),
    errors: [400, ...ANALYSIS],
  },
  {
    method: 'get',
    path: `/v1/master/${name}s/{id}`,
    id: `get${base}`,
    tag: 'Log',
    summary: `One ${name}, by its id or that of its ${base === 'Call' ? 'decision' : 'call'}`,
    key: 'master',
    answer: json(`${base}Answer`, 'As it is on record.'),
    errors: ANALYSIS,
  },
];

const singles = [
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
      'Under the rules of a stored `key`, or draft `rules`. The outcome is `not_found` where no provider has a credential.',
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
    method: 'post',
    path: '/v1/master/policy/replay',
    id: 'replayPolicy',
    tag: 'Policy',
    summary: 'What the rules, a draft, a folder or a bundle would make of logged decisions',
    description:
      'At most 100,000 decisions, within 30 seconds, outside the serving thread. With `stream` the answer is server-sent events: `progress`, each a `ReplayProgress`, then `report`; a failure after the first byte is an event without a name. Developers replay those of their own keys; `rules`, `folder` and `bundle` are for owners and admins. 409 `rules_changed` where rules changed while a folder was planned.',
    key: 'master',
    request: 'ReplayRequest',
    answer: {
      status: 200,
      description: 'How many decisions would change: with which keys, for which models, by which rules.',
      content: { 'application/json': 'ReplayReport', 'text/event-stream': 'ReplayEvent' },
    },
    errors: [400, 409, 413, ...ANALYSIS],
  },
  {
    method: 'post',
    path: '/v1/master/policy/plan',
    id: 'planPolicyFolder',
    tag: 'Policy',
    summary: 'What an apply of a policy folder would change',
    description:
      'The rules, and exactly which access. `portcullis policy document` makes one JSON document of a folder. For owners and admins.',
    key: 'master',
    query: { ...PRUNE, ...WITHOUT_CREDENTIAL },
    request: 'PolicyFolder',
    answer: json('PolicyPlan', 'Nothing is changed.'),
    errors: [400, ...ANALYSIS],
  },
  {
    method: 'post',
    path: '/v1/master/policy/apply',
    id: 'applyPolicyFolder',
    tag: 'Policy',
    summary: 'Make the rules what a policy folder states',
    description:
      'All of it or nothing; applied twice, the second apply changes nothing. 409 `rules_changed` or `folder_changed` where a reviewed plan was for something else. For owners and admins.',
    key: 'master',
    query: {
      ...PRUNE,
      ...WITHOUT_CREDENTIAL,
      failOnNewAccess: { description: 'Refuse what permits something new (409 `new_access`).', type: 'boolean' },
      ruleRevision: { description: 'Of the plan that was reviewed.', type: 'integer' },
      digest: text('The same.'),
      revision: text("The folder's revision in git, for the audit log."),
    },
    request: 'PolicyFolder',
    answer: json('PolicyPlan', 'It is done.'),
    errors: [400, 409, ...ANALYSIS],
  },
  {
    method: 'get',
    path: '/v1/master/policy/bundle',
    id: 'getPolicyBundle',
    tag: 'Policy',
    summary: 'The policy in force, and the bundles that were offered',
    description: 'One for all organizations: settings and the command line change it. For owners and admins.',
    key: 'master',
    answer: json('PolicyBundleAnswer', 'As it is.'),
    errors: [401, 403],
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
    querySchema: usage.$defs.query,
    answer: {
      status: 200,
      description: 'The report.',
      content: { 'application/json': 'UsageReport', 'text/csv': 'text' },
    },
    errors: [400, ...ANALYSIS],
  },
  ...logged('call', 'Call', 'What was asked, and how it ended.'),
  ...logged(
    'decision',
    'Decision',
    'How the policy decided. `portcullis decisions export` writes the log as OPA does.',
  ),
  {
    method: 'get',
    path: '/v1/master/requests',
    id: 'listRequests',
    tag: 'Log',
    summary: 'Search for refused requests',
    description:
      "Requests at the gateway that ended with an error before they were calls: 401, 404, 429, 400 and the like. Kept for `REFUSED_REQUESTS_HOURS`; of many in a short time some have no row. Those of no known key are no organization's: the command line shows them. Developers see those of their own keys.",
    key: 'master',
    querySchema: refusedRequest.$defs.query,
    answer: json('RefusedRequestList', 'A page, newest first.'),
    errors: [400, ...ANALYSIS],
  },
  {
    method: 'get',
    path: '/v1/master/requests/{id}',
    id: 'getRequest',
    tag: 'Log',
    summary: "One refused request, by its id or the caller's own",
    key: 'master',
    answer: json('RefusedRequestAnswer', 'As it is on record.'),
    errors: ANALYSIS,
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
] as const satisfies readonly Operation[];

export const management = {
  title: 'Portcullis management',
  description: 'The master API: keys, IAM rules, organization, providers, policy, usage, audit.',
  tags: {
    Keys: 'Gateway keys, master keys, platform keys.',
    'IAM rules':
      'Of keys, members, groups and the organization. In a change the named fields of `ruleValue` replace, null removes one, and a list is replaced as a whole; another type needs a whole value. The answer to a rule that is made, changed or deleted says what that newly permits (`widens`); `failOnNewAccess` refuses what permits anything new (409 `new_access`).',
    Groups: 'Members and keys whose calls the same rules bind.',
    Organization: 'The organization, its projects, members and invitations.',
    Budgets: 'Spend limits that all keys of a member, a project or the organization share.',
    Providers: 'Credentials, providers and models of the organization.',
    Policy: 'What the rules mean.',
    Usage: 'Reports.',
    Log: 'Calls and decisions.',
    Audit: 'The log of changes.',
    Operation: 'Health, metrics and description.',
  },
  operations: [
    ...resources,
    ...rules('/v1/master/keys/{id}/iam', 'KeyRule', 'a key'),
    ...rules('/v1/master/members/{member}/iam', 'MemberRule', 'a member'),
    ...rules('/v1/master/groups/{id}/iam', 'GroupRule', 'a group'),
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
} as const satisfies Listener;

export type ManagementId = (typeof management.operations)[number]['id'];

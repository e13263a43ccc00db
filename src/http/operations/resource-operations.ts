import { json, type Operation } from './operation.ts';
import { ALL, ANALYSIS, operationsOf, PAGE, READ, text, WRITE, WRITES } from './usual-operations.ts';

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
    judged: ['change'],
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
    judged: ['change'],
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
    judged: WRITES,
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
    judged: WRITES,
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
    judged: WRITES,
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
    judged: WRITES,
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

/** The operations of the resources that are listed, made, changed and deleted, their rules and their budgets. */
export const resourceOperations = [
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
] as const satisfies readonly Operation[];

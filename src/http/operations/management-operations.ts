import call from '../../../schemas/admin/call.json' with { type: 'json' };
import refusedRequest from '../../../schemas/admin/refused-request.json' with { type: 'json' };
import usage from '../../../schemas/admin/usage.json' with { type: 'json' };
import { json, type Listener, type Operation } from './operation.ts';
import { resourceOperations } from './resource-operations.ts';
import { ANALYSIS, PAGE, READ, text, WRITE } from './usual-operations.ts';

/** Parameter of analyses: they name models that can be called, or also those that cannot be for lack of a credential. */
const WITHOUT_CREDENTIAL = {
  withoutCredential: {
    description: 'Also what the rules permit and cannot be called, for lack of a credential.',
    type: 'boolean',
  },
} as const;

/** Parameter of policy folders. */
const PRUNE = {
  prune: {
    description: 'Also remove the rules that no folder states, of everyone in the organization.',
    type: 'boolean',
  },
} as const;

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
  operations: [...resourceOperations, ...singles],
} as const satisfies Listener;

export type ManagementId = (typeof management.operations)[number]['id'];

/** What a call's cost is divided into: the steps of its journey (README.md), and what serves all of them. */
export const STEPS = [
  'http',
  'authenticate',
  'rate limit',
  'parse',
  'validate',
  'resolve',
  'decide',
  'cache',
  'open',
  'commit',
  'send',
  'receive',
  'settle',
  'answer',
  'log',
  'metrics',
  'collector',
  'elsewhere',
] as const;

export type Step = (typeof STEPS)[number];

/** A function on a stack: its name, and the address of its file. */
export interface Frame {
  readonly name: string;
  readonly url: string;
}

type Place = readonly [step: Step, path: string, names?: RegExp];

/**
 * Our files and folders, and functions of them where a file serves two steps; the first that fits counts. What is not named
 * (`src/lib`, `src/domain`, `src/store/db/sql.ts`) works for the step that called it.
 */
export const OURS: readonly Place[] = [
  ['rate limit', '/src/http/authenticate.ts', /^(?:duration|setHeaders|judge|limit\w*|rateLimit)$/],
  ['authenticate', '/src/http/authenticate.ts'],
  ['rate limit', '/src/core/caller.ts', /^(?:shareOf|rateOf|nearest|take\w*|look|spend|limits?|#\w+)$/],
  ['authenticate', '/src/core/caller.ts'],
  ['open', '/src/store/tenants/key-credential.ts', /^(?:createBudgetReads|mayBind|of)$/],
  ['authenticate', '/src/store/tenants/'],
  ['validate', '/src/http/body.ts', /^checkedBody$/],
  ['validate', '/src/lib/schemas.ts'],
  ['parse', '/src/http/body.ts'],
  ['decide', '/src/core/authorize.ts'],
  ['decide', '/src/core/route.ts', /^permit$/],
  ['decide', '/src/core/call.ts', /^(?:requestFacts|policyTime|toolNames|callMetadata|worstCases|worstCaseAt)$/],
  ['decide', '/src/policy/'],
  ['decide', '/src/store/rules/'],
  ['send', '/src/core/reach.ts', /^(?:ordered|begun|ended|succeeded|failed|#\w+)$/],
  ['resolve', '/src/core/reach.ts'],
  ['resolve', '/src/core/resolve.ts'],
  ['resolve', '/src/catalog/'],
  ['resolve', '/src/store/providers/'],
  ['cache', '/src/core/chat-answer.ts', /^(?:cacheKey|get|set)$/],
  ['send', '/src/core/chat.ts', /^unsupportedIn$/],
  ['cache', '/src/core/chat.ts', /^(?:findCached|serveCached|streamCached)$/],
  ['settle', '/src/store/ledger/ledger.ts', /^settleCall$/],
  ['settle', '/src/store/store.ts', /^settleCall$/],
  ['settle', '/src/core/call.ts'],
  ['settle', '/src/core/cost.ts'],
  ['settle', '/src/core/worst-case.ts'],
  ['settle', '/src/core/operations.ts'],
  [
    'settle',
    '/src/core/provider-answer.ts',
    /^(?:add\w*|told|usage|clear|get audioTokens|toCount|nameThoughts|chunkPieces|choicePieces|callsIn|#(?:unreported|report|say|complete))$/,
  ],
  ['open', '/src/core/route.ts', /^(?:newCall|openCall|recordCacheHit|recordFinished)$/],
  ['open', '/src/store/ledger/ledger.ts'],
  ['open', '/src/store/ledger/references.ts', /^(?:documentText|getDecision|getDataDocument|toDecision|ofId)$/],
  ['open', '/src/store/store.ts', /^(?:openCall|recordFinishedCall)$/],
  ['commit', '/src/store/store.ts', /^(?:enqueue|flush|run|#\w+)$/],
  // But for `Freshness`, which works for the step that asks it.
  ['commit', '/src/store/db/database.ts', /^(?!(?:epoch|during|get|#look|#endTurn)$)/],
  ['commit', '/src/store/db/checkpoint-job.ts'],
  ['send', '/src/core/route.ts'],
  ['send', '/src/core/target-exchange.ts'],
  ['send', '/src/core/chat-answer.ts', /^(?:outboundChat|droppedIn|producedBy)$/],
  ['send', '/src/providers/openai/request.ts'],
  ['send', '/src/net/transport.ts'],
  ['receive', '/src/net/'],
  ['receive', '/src/core/provider-answer.ts'],
  ['receive', '/src/core/stream-chat.ts', /^(?:openStream|openChatStream)$/],
  ['receive', '/src/providers/'],
  [
    'answer',
    '/src/http/inference.ts',
    /^(?:send\w+|begin|metadataForm|\w*[iI]nForm|event|end|close|drained|onFailure|writeEventStream|#\w+)$/,
  ],
  ['answer', '/src/core/'],
  ['log', '/src/http/pipeline.ts', /^(?:accessLog|noteRefusal|outcomeOf)$/],
  ['log', '/src/telemetry/telemetry.ts'],
  ['metrics', '/src/telemetry/metrics.ts'],
  ['http', '/src/http/'],
];

/** Packages and Node's own files, where nothing of ours called them. */
const OTHERS: readonly Place[] = [
  ['send', '/node_modules/undici/', /^(?:_?resume|write|dispatch|connect)/i],
  ['receive', '/node_modules/undici/'],
  ['log', '/node_modules/sonic-boom/'],
  ['http', '/node_modules/'],
  ['http', 'node:_http'],
];

/** The step of the innermost function that belongs to one. */
function find(places: readonly Place[], frames: readonly Frame[]): Step | undefined {
  for (const { name, url } of frames) {
    const found = places.find(([, path, names]) => url.includes(path) && names?.test(name) !== false);
    if (found !== undefined) return found[0];
  }
  return undefined;
}

/** The step that a stack, innermost function first, works for. */
export function stepOf(frames: readonly Frame[]): Step {
  if (frames[0]?.name === '(garbage collector)') return 'collector';
  return find(OURS, frames) ?? find(OTHERS, frames) ?? 'elsewhere';
}

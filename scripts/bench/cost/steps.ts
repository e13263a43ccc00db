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
  ['authenticate', '/src/http/middleware/authenticate.ts'],
  ['authenticate', '/src/http/request/credential.ts'],
  ['authenticate', '/src/core/access/authenticate.ts'],
  ['authenticate', '/src/store/tenants/'],
  ['rate limit', '/src/http/middleware/rate-limit.ts'],
  ['rate limit', '/src/core/access/rate-limit.ts'],
  ['validate', '/src/http/middleware/json-body.ts', /^checkedBody$/],
  ['validate', '/src/generated/'],
  ['parse', '/src/http/middleware/json-body.ts'],
  ['parse', '/src/http/request/'],
  ['decide', '/src/core/access/'],
  ['decide', '/src/core/call/open-call.ts', /^permit$/],
  ['decide', '/src/policy/'],
  ['decide', '/src/store/rules/'],
  ['resolve', '/src/core/models/'],
  ['resolve', '/src/catalog/'],
  ['resolve', '/src/store/providers/'],
  ['cache', '/src/core/chat/response-cache.ts'],
  ['cache', '/src/core/chat/serve-cached.ts'],
  ['settle', '/src/store/ledger/ledger.ts', /^settleCall$/],
  ['settle', '/src/store/ledger/settlement-retries.ts'],
  ['settle', '/src/store/store.ts', /^settleCall$/],
  ['settle', '/src/core/call/call.ts'],
  ['settle', '/src/core/price/'],
  ['open', '/src/core/call/open-call.ts'],
  ['open', '/src/store/ledger/ledger.ts'],
  ['open', '/src/store/ledger/decisions.ts'],
  ['open', '/src/store/budgets/'],
  ['open', '/src/store/store.ts', /^(?:openCall|recordFinishedCall)$/],
  ['commit', '/src/store/ledger/writer.ts'],
  ['commit', '/src/store/db/database.ts'],
  ['commit', '/src/store/threads/'],
  ['send', '/src/core/call/route.ts'],
  ['send', '/src/core/call/exchange.ts'],
  ['send', '/src/core/call/health.ts'],
  ['send', '/src/core/chat/chat-exchange.ts'],
  ['send', '/src/providers/openai/request.ts'],
  ['send', '/src/net/transport.ts'],
  ['receive', '/src/net/'],
  ['receive', '/src/core/call/answers.ts'],
  ['receive', '/src/core/call/read-answer.ts'],
  ['receive', '/src/core/chat/open-stream.ts'],
  ['receive', '/src/providers/'],
  ['answer', '/src/http/answer/'],
  ['answer', '/src/http/connection/send-queue.ts'],
  ['answer', '/src/core/call/'],
  ['answer', '/src/core/chat/'],
  ['log', '/src/http/middleware/access-log.ts'],
  ['log', '/src/telemetry.ts'],
  ['log', '/src/event-loop.ts'],
  ['metrics', '/src/metrics.ts'],
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

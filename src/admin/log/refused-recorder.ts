import { LRUCache } from 'lru-cache';
import chatRequest from '../../../schemas/api/chat-request.json' with { type: 'json' };
import imageRequest from '../../../schemas/api/image-request.json' with { type: 'json' };
import moderationRequest from '../../../schemas/api/moderation-request.json' with { type: 'json' };
import type { Clock } from '../../domain/time.ts';
import { scrub } from '../../providers/wire/upstream-error.ts';
import { forgetRefused, keepRefused, type RefusedRequest } from '../../store/ledger/refused-requests.ts';
import type { Store } from '../../store/store.ts';
import { errorText, type Telemetry } from '../../telemetry/telemetry.ts';

/** A request that ended with an error before it was a call, as its listener saw it: texts of the caller are in it. */
export interface SeenRefusal {
  readonly requestId: string;
  readonly clientRequestId: string | undefined;
  /** Owner of the key; undefined: the key is not known. */
  readonly whose: KnownKey | undefined;
  readonly statusCode: number;
  readonly errorCode: string | undefined;
  readonly message: string | undefined;
  /** JSON pointer of the fault, which the message may repeat. */
  readonly param: string | null | undefined;
  readonly detail: string | undefined;
  readonly method: string;
  readonly path: string;
  /** The path of its route as declared; undefined: there is none. */
  readonly route: string | undefined;
  readonly body: unknown;
  readonly clientAddress: string | null;
  /** The caller's network: one caller, where no key is known. */
  readonly network: string;
  readonly userAgent: string | undefined;
}

/** Owner of a key that was named, usable or not. */
interface KnownKey {
  readonly organizationId: string;
  readonly projectId: string;
  readonly keyId: string;
  readonly memberId: string | undefined;
}

/** Names of the fields of requests: no others are repeated. */
const FIELDS: ReadonlySet<string> = new Set(
  [chatRequest, imageRequest, moderationRequest].flatMap((schema) =>
    [...JSON.stringify(schema).matchAll(/"([a-z][a-z_0-9]{0,40})":/g)].map(([, name = '']) => name),
  ),
);

/** A JSON pointer without the names that are the caller's own. */
const cleanPointer = (pointer: string): string =>
  pointer
    .split('/')
    .map((step) => (step === '' || /^[0-9]{1,4}$/.test(step) || FIELDS.has(step) ? step : '…'))
    .join('/');

/** Steps of addresses of APIs: a path that is no route's is kept in these alone, since it may hold anything. */
const STEPS: ReadonlySet<string> = new Set([
  ...['', 'v1', 'v2', 'v1beta', 'v1alpha', 'api', 'openai', 'anthropic', 'mcp', 'sse', 'master', 'keys', 'docs'],
  ...['chat', 'completions', 'completion', 'messages', 'count_tokens', 'responses', 'embeddings', 'models', 'model'],
  ...['images', 'image', 'generations', 'edits', 'variations', 'audio', 'speech', 'transcriptions', 'translations'],
  ...['moderations', 'files', 'batches', 'uploads', 'fine_tuning', 'jobs', 'assistants', 'threads', 'runs', 'realtime'],
  ...['sessions', 'engines', 'vector_stores', 'rerank', 'organization', 'usage', 'health', 'metrics', 'favicon.ico'],
  ...['oauth', 'authorize', 'token', 'register', '.well-known', 'openid-configuration', 'oauth-authorization-server'],
  ...['oauth-protected-resource', 'robots.txt', 'sign-in'],
]);

const cleanPath = (path: string): string =>
  path
    .split('/', 8)
    .map((step) => (STEPS.has(step) ? step : '…'))
    .join('/');

const LONGEST = { quoted: 4096, message: 300, model: 128, agent: 128 };

/** The answer's message, without text quoted from the request. */
function cleanMessage({ message, param, path }: SeenRefusal): string | null {
  // One that repeats the name of a field may be as long as a body.
  if (message === undefined || message.length > LONGEST.quoted) return null;
  let text = path.length > 1 ? message.replaceAll(path, cleanPath(path)) : message;
  if (param) text = withoutBracketed(text.replaceAll(param, cleanPointer(param)));
  return scrub(withoutQuoted(text)).slice(0, LONGEST.message);
}

/** The text that stands at a pointer is in brackets behind it. */
function withoutBracketed(text: string): string {
  const [first, last] = [text.indexOf(' ('), text.lastIndexOf(')')];
  return first === -1 || last < first ? text : `${text.slice(0, first)} (…)${text.slice(last + 1)}`;
}

/** Texts of the caller stand in quotes, and may hold such themselves, or be cut: all from the first to the last goes. */
function withoutQuoted(text: string): string {
  const first = text.search(/["`]/);
  if (first === -1) return text;
  const last = Math.max(...['"', '`', '…'].map((end) => text.lastIndexOf(end)));
  return `${text.slice(0, first)}\`…\`${last === first ? '' : text.slice(last + 1)}`;
}

/** A name that could be a model's, and nothing that looks like a credential. */
function cleanModel(body: unknown): string | null {
  const model = typeof body === 'object' && body !== null && 'model' in body ? body.model : undefined;
  if (typeof model !== 'string' || !/^[\w.:/@+-]+$/.test(model) || model.length > LONGEST.model) return null;
  return scrub(model) === model ? model : null;
}

const NAME = /^[A-Za-z][A-Za-z-]{0,24}$/;
const VERSION = /^v?[0-9]{1,4}(?:\.[0-9]{1,4}){0,3}$/;

/** The programs that it names with their versions, `curl/8.5.0` or `OpenAI/Python 1.40.2`, and nothing else. */
function cleanAgent(agent: string | undefined): string | null {
  if (agent === undefined || scrub(agent) !== agent.trim()) return null;
  const words = agent.slice(0, 512).split(/[ ;,]/, 40);
  const products = words.flatMap((word, place) => {
    const [name = '', second = '', ...more] = word.split('/', 3);
    if (!NAME.test(name) || more.length > 0) return [];
    if (VERSION.test(second)) return [word];
    const next = words[place + 1] ?? '';
    return NAME.test(second) && VERSION.test(next) ? [`${word} ${next}`] : [];
  });
  return products.length === 0 ? null : products.slice(0, 4).join(' ').slice(0, LONGEST.agent);
}

/** An id of the caller's own, which may be 32 hexadecimal digits; what begins as keys do is none. */
const cleanId = (id: string | undefined): string | null =>
  id === undefined || (scrub(id) !== id && !/^[0-9a-f]{32,64}$/i.test(id)) ? null : id;

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

function rowOf(seen: SeenRefusal, unrecorded: number): RefusedRequest {
  const { whose, route } = seen;
  return {
    id: seen.requestId,
    clientRequestId: cleanId(seen.clientRequestId),
    organizationId: whose?.organizationId ?? null,
    projectId: whose?.projectId ?? null,
    keyId: whose?.keyId ?? null,
    memberId: whose?.memberId ?? null,
    statusCode: seen.statusCode,
    errorCode: seen.errorCode ?? null,
    message: cleanMessage(seen),
    detail: seen.detail ?? null,
    endpoint: `${METHODS.has(seen.method) ? seen.method : '…'} ${route ?? cleanPath(seen.path)}`,
    requestedModel: cleanModel(seen.body),
    clientAddress: seen.clientAddress,
    userAgent: cleanAgent(seen.userAgent),
    unrecorded,
  };
}

/** So many at once, and so many a minute after that. */
interface Allowance {
  readonly burst: number;
  readonly perMinute: number;
}

/**
 * One loop of one key, or a scan, must fill neither the disk nor the list. In a day an organization gets some 20,000 rows, a key 3,000
 * of them, and all who name no known key 3,000, which come out of nobody else's.
 */
const ALLOWED = {
  key: { burst: 60, perMinute: 2 },
  organization: { burst: 600, perMinute: 14 },
  address: { burst: 20, perMinute: 1 },
  unknown: { burst: 200, perMinute: 2 },
} as const satisfies Record<string, Allowance>;

/** Most callers whose allowances are remembered. */
const MAX_CALLERS = 10_000;

class Bucket {
  readonly #allowance: Allowance;
  #tokens: number;
  #filledAt: number;
  /** Requests without a row since the last that has one. */
  unrecorded = 0;

  constructor(allowance: Allowance, now: number) {
    this.#allowance = allowance;
    this.#tokens = allowance.burst;
    this.#filledAt = now;
  }

  has(now: number): boolean {
    const { burst, perMinute } = this.#allowance;
    this.#tokens = Math.min(burst, this.#tokens + ((now - this.#filledAt) * perMinute) / 60_000);
    this.#filledAt = now;
    return this.#tokens >= 1;
  }

  take(): void {
    this.#tokens -= 1;
  }
}

function bucketIn(buckets: LRUCache<string, Bucket>, name: string, allowance: Allowance, now: number): Bucket {
  const known = buckets.get(name);
  if (known !== undefined) return known;
  const made = new Bucket(allowance, now);
  buckets.set(name, made);
  return made;
}

/** Rows that wait at most, and for how long. */
const MAX_WAITING = 1000;
const FLUSH_MS = 250;
const FORGET_EVERY_MS = 60_000;
/** Rows in one transaction. */
const CHUNK = 200;

interface RefusedRecorderDeps {
  readonly store: Pick<Store, 'write'>;
  readonly clock: Clock;
  readonly telemetry: Pick<Telemetry, 'warn'>;
  /** For which rows are kept. */
  readonly hours: number;
}

/** Records refused requests, sampled, behind their answers. */
export class RefusedRecorder {
  readonly #deps: RefusedRecorderDeps;
  /** Apart, so that many addresses displace no key. */
  readonly #addresses = new LRUCache<string, Bucket>({ max: MAX_CALLERS });
  readonly #keys = new LRUCache<string, Bucket>({ max: MAX_CALLERS });
  readonly #unknown = new Bucket(ALLOWED.unknown, performance.now());
  #waiting: RefusedRequest[] = [];
  #flush: NodeJS.Timeout | undefined;
  readonly #forget: NodeJS.Timeout;
  #running: Promise<void> = Promise.resolve();

  constructor(deps: RefusedRecorderDeps) {
    this.#deps = deps;
    this.#run(() => this.#forgetOld());
    this.#forget = setInterval(() => this.#run(() => this.#forgetOld()), FORGET_EVERY_MS).unref();
  }

  /** A request has been refused. Never throws, never waits. */
  note(seen: SeenRefusal): void {
    const now = performance.now();
    const { whose, network } = seen;
    const own =
      whose === undefined
        ? bucketIn(this.#addresses, network, ALLOWED.address, now)
        : bucketIn(this.#keys, whose.keyId, ALLOWED.key, now);
    const shared =
      whose === undefined ? this.#unknown : bucketIn(this.#keys, whose.organizationId, ALLOWED.organization, now);
    if (!own.has(now) || !shared.has(now) || this.#waiting.length >= MAX_WAITING) {
      own.unrecorded += 1;
      return;
    }
    own.take();
    shared.take();
    this.#waiting.push(rowOf(seen, own.unrecorded));
    own.unrecorded = 0;
    this.#flush ??= setTimeout(() => this.#run(() => this.#write()), FLUSH_MS).unref();
  }

  /** Writes what waits. */
  async close(): Promise<void> {
    clearInterval(this.#forget);
    clearTimeout(this.#flush);
    this.#run(() => this.#write());
    await this.#running;
  }

  #run(work: () => Promise<void>): void {
    this.#running = this.#running.then(work).catch((error: unknown) => {
      this.#deps.telemetry.warn('refused requests could not be recorded', { error: errorText(error) });
    });
  }

  async #write(): Promise<void> {
    this.#flush = undefined;
    while (this.#waiting.length > 0) {
      const some = this.#waiting.splice(0, CHUNK);
      await this.#deps.store.write((db) => keepRefused(db, some));
    }
  }

  async #forgetOld(): Promise<void> {
    const { store, clock, hours } = this.#deps;
    const before = clock.now() - hours * 3_600_000;
    while ((await store.write((db) => forgetRefused(db, before, CHUNK))) === CHUNK);
  }
}

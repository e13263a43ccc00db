// Threat: text of a caller that is the name of a property that every object inherits (`__proto__`, `constructor`, `toString`), or an
// object where a text is expected, is found in a table of ours, or breaks what reads it. Defence: tables are looked up by own names
// only, and nothing is coerced before it is validated (`test/architecture.test.ts` holds the first).
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gateway as gatewayListener } from '../../src/http/operations/gateway-operations.ts';
import { management as managementListener } from '../../src/http/operations/management-operations.ts';
import type { Operation } from '../../src/http/operations/operation.ts';
import { Application, newKey, signedIn } from '../http/oauth/application.ts';
import { type BodyPlace, bodyPlaces, bodyWith } from '../support/body-places.ts';
import { alertsOf } from '../support/browser.ts';
import { bearer, hello, JSON_TYPE } from '../support/chat.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { send as sendTo } from '../support/request.ts';
import { startOrganizations } from '../tenancy/organizations.ts';
import { bodyOf, pathIdentifiers, type Route } from '../tenancy/routes.ts';

const NAMES = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf', '__defineGetter__'];

/** In the place of a text, a number or a list. */
const VALUES: readonly unknown[] = [
  ...NAMES,
  { toString: 'x' },
  { toString: null, valueOf: null },
  { length: 1, 0: 'x' },
  JSON.parse('{"__proto__": {"x": 1}}'),
  [],
  [['constructor']],
  7,
  -1e308,
  true,
  '',
];

const organizations = await startOrganizations();
const { server, own } = organizations;
afterAll(() => server.close());

const operations: readonly Operation[] = managementListener.operations.filter(({ path }) => path.startsWith('/v1/'));
const routeOf = ({ method, path }: Operation): Route => ({
  method: method.toUpperCase(),
  path: path.replaceAll(/\{(\w+)\}/g, ':$1'),
});

/** The path with identifiers of the callers' own, or with one text for all of them. */
function pathOf(operation: Operation, text?: string): string {
  const route = routeOf(operation);
  const ids = pathIdentifiers(route).map(({ kind }) => encodeURIComponent(text ?? own[kind][0] ?? ''));
  return route.path.replaceAll(/:\w+/g, () => ids.shift() ?? '');
}

/** Writes would end what later requests name: their paths lead to nothing, or to what a refused body leaves as it is. */
const isDeletion = ({ method }: Operation): boolean => method === 'delete';

const failures: string[] = [];
const noteFailure = (status: number, text: string, what: string): void => {
  if (status >= 500 || status === 429) failures.push(`${what}: ${text}`);
};
const expectNoFailure = (): void => expect(failures.splice(0)).toEqual([]);

const baseBody = (operation: Operation): object =>
  operation.path.endsWith('/accept') ? {} : (bodyOf(routeOf(operation))?.((kind) => own[kind][0] ?? '') ?? {});

describe('the master API never fails, and refuses or takes as a word', () => {
  it.each(operations.map((operation) => [operation.id, operation] as const))(
    '%s',
    async (_, operation) => {
      const { method, query, querySchema, request } = operation;
      const empty = request === undefined ? undefined : {};
      const ask = async (target: string, body?: object): Promise<void> => {
        const answer = await fetch(`${server.origin}${target}`, {
          method: method.toUpperCase(),
          headers: { authorization: `Bearer ${server.tokens.owner}`, 'content-type': 'application/json' },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        });
        noteFailure(answer.status, await answer.text(), `${method} ${target} ${JSON.stringify(body)}`);
      };
      const path = isDeletion(operation) ? pathOf(operation, 'none') : pathOf(operation);
      for (const name of NAMES) {
        if (path !== operation.path) await ask(pathOf(operation, name), empty);
        await ask(`${path}?${name}=1`, empty);
        for (const parameter of Object.keys(query ?? querySchema?.properties ?? {})) {
          await ask(`${path}?${parameter}=${name}`, empty);
        }
      }
      if (request !== undefined) {
        const base = baseBody(operation);
        for (const place of bodyPlaces(request)) {
          for (const value of VALUES) await ask(path, bodyWith(base, place.steps, value));
          if (!place.steps.includes('*')) continue;
          for (const name of NAMES) await ask(path, bodyWith(base, place.steps, {}, name));
        }
        for (const name of NAMES) await ask(path, bodyWith(base, [name], { x: 1 }));
      }
      expectNoFailure();
    },
    120_000,
  );
});

describe('the gateway never fails, and refuses or takes as a word', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway({
      RATE_LIMIT_CHAT_PER_MINUTE: 'off',
      RATE_LIMIT_IMAGES_PER_MINUTE: 'off',
      RATE_LIMIT_MODERATIONS_PER_MINUTE: 'off',
      RATE_LIMIT_MODELS_PER_MINUTE: 'off',
      RATE_LIMIT_MCP_PER_MINUTE: 'off',
    });
  });
  afterAll(() => gateway.close());

  const ask = async (method: string, path: string, body?: object): Promise<void> => {
    const headers = [
      bearer(gateway.firstRun.gatewayKey),
      JSON_TYPE,
      ['accept', 'application/json'],
      ['x-portcullis-meta-__proto__', 'constructor'],
      ['x-portcullis-meta-constructor', '__proto__'],
    ] as const;
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const { status, text } = await sendTo(gateway.origin, { method, path, headers, ...sent });
    const isFailure = status === 500 || text.includes('internal_error');
    noteFailure(isFailure ? 500 : status, text, `${method} ${path} ${JSON.stringify(body)}`);
  };

  const BASES: Readonly<Record<string, object>> = {
    createChatCompletion: hello({
      model: 'sandbox-free',
      tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }],
    }),
    createImage: { model: 'sandbox-image-plus', prompt: 'A cat', size: '64x64' },
    createModeration: { input: 'Hello' },
  };

  const attackBody = async (path: string, base: object, places: readonly BodyPlace[]): Promise<void> => {
    for (const { steps } of places) {
      for (const value of VALUES) await ask('POST', path, bodyWith(base, steps, value));
      for (const name of steps.includes('*') ? NAMES : []) await ask('POST', path, bodyWith(base, steps, 'x', name));
    }
    for (const name of NAMES) await ask('POST', path, bodyWith(base, [name], { x: 1 }));
  };

  it.each(Object.keys(BASES))(
    '%s',
    async (id) => {
      const operation: Operation | undefined = gatewayListener.operations.find((each) => each.id === id);
      if (operation?.request === undefined) throw new Error(`${id} takes no body`);
      await attackBody(operation.path, BASES[id] ?? {}, bodyPlaces(operation.request));
      expectNoFailure();
    },
    240_000,
  );

  it('the model list', async () => {
    for (const name of NAMES) {
      await ask('GET', `/v1/models/${name}`);
      await ask('GET', `/v1/models/${name}/${name}`);
      await ask('GET', `/v1/models?${name}=${name}`);
      for (const parameter of ['include_deactivated', 'exclude_deprecated', 'no_training', 'mapped']) {
        await ask('GET', `/v1/models?${parameter}=${name}`);
      }
    }
    expectNoFailure();
  });

  it.each([
    ['chat', 'ChatArguments', { model: 'sandbox-free', messages: [{ role: 'user', content: 'Hello' }] }],
    ['list-models', 'ListModelsArguments', {}],
    ['generate-image', 'GenerateImageArguments', { model: 'sandbox-image-plus', prompt: 'A cat' }],
    ['generate-nano-banana', 'NanoBananaArguments', { prompt: 'A cat' }],
  ])(
    'the MCP tool %s',
    async (name, title, base) => {
      const call = (params: unknown) => ({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
      for (const { steps } of bodyPlaces(title)) {
        for (const value of VALUES) await ask('POST', '/mcp', call({ name, arguments: bodyWith(base, steps, value) }));
      }
      for (const value of VALUES) {
        await ask('POST', '/mcp', call({ name: value, arguments: base }));
        await ask('POST', '/mcp', call({ name, arguments: value }));
        await ask('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: value, params: {} });
        await ask('POST', '/mcp', { jsonrpc: '2.0', id: value, method: 'tools/list', params: value });
      }
      expectNoFailure();
    },
    120_000,
  );
});

describe('pages', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(() => gateway.close());

  it.each(['window', 'days'])('refuse a choice of %s that every object has', async (name) => {
    const application = new Application(gateway);
    await application.register();
    const { path } = await application.askConsent();
    for (const value of NAMES) {
      const sent = { ...newKey(gateway), limit: '1', [name]: value, answer: 'allow' };
      const answered = await application.browser.submit(path, sent);
      expect([value, answered.status, alertsOf(answered)]).toEqual([value, 400, [expect.stringMatching(/^Choose a /)]]);
    }
  });

  it('show nothing for a sentence that every object has', async () => {
    const browser = signedIn(gateway);
    const { text } = await browser.get('/oauth/interaction/account');
    expect(text).toContain('Your account');
    for (const name of NAMES) {
      const page = await browser.get(`/oauth/interaction/account?done=${name}`);
      expect([name, page.status, page.text.includes('role="status"')]).toEqual([name, 200, false]);
    }
  });
});

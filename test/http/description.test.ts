// `/openapi.json` and `/reference`: what each listener says of itself is what there is.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import Router from '@koa/router';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gateway as gatewayOperations } from '../../src/http/operations/gateway-operations.ts';
import {
  type ManagementId,
  management as managementOperations,
} from '../../src/http/operations/management-operations.ts';
import { COMMON, type CommonId, type Listener } from '../../src/http/operations/operation.ts';
import { type Handlers, register } from '../../src/http/routes.ts';
import contract from '../schemas/contract.json' with { type: 'json' };
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { send } from '../support/request.ts';

const folder = fileURLToPath(new URL('../../src/http', import.meta.url));
let running: TestGateway;

beforeAll(async () => {
  running = await startGateway();
});

afterAll(() => running.close());

const withCommon = (listener: Listener): Listener => ({
  ...listener,
  operations: [...listener.operations, ...COMMON],
});

const listeners: readonly [name: string, listener: Listener, origin: () => string][] = [
  ['gateway', withCommon(gatewayOperations), () => running.origin],
  ['management', withCommon(managementOperations), () => running.management],
];

it('only the pages and OAuth, which no document describes, put routes past the table of operations', () => {
  const putting = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .filter((name) =>
      /\brouter(?:\.(?:get|post|patch|put|delete|all)\(|\[)/.test(readFileSync(path.join(folder, name), 'utf8')),
    );
  expect(putting.sort()).toEqual(['oauth/oauth-endpoints.ts', 'pages/pages.ts', 'routes.ts']);
});

it('an operation without a handler, and a handler without an operation, do not compile, and are not registered', () => {
  const [health] = COMMON;
  const answer = () => undefined;
  const misspelt = { getHelth: answer };
  // @ts-expect-error
  expect(() => register(new Router(), [health], {})).toThrow('The operation getHealth has no handler.');
  // @ts-expect-error
  expect(() => register(new Router(), [health], misspelt)).toThrow('The operation getHealth has no handler.');
  // @ts-expect-error
  expect(misspelt satisfies Partial<Handlers<CommonId>>).toEqual({ getHelth: answer });
  // @ts-expect-error
  expect({ getMemberBudgt: answer } satisfies Partial<Handlers<ManagementId>>).toBeDefined();
  register(new Router(), [health], { getHealth: answer });
});

describe.each(listeners)('the %s', (name, { operations, tags }, origin) => {
  it('serves its document, without a key', async () => {
    const { status, headers, json, text } = await send(origin(), { path: '/openapi.json' });
    expect([status, headers['content-type']]).toEqual([200, 'application/json; charset=utf-8']);
    expect(json).toMatchObject({ openapi: '3.1.1', info: { title: `Portcullis ${name}` } });
    // The recorded one is also what CI gives to the linter.
    const recorded: unknown = Reflect.get(contract.documents, name);
    expect(createHash('sha256').update(text).digest('hex')).toBe(recorded);
  });

  it('serves a page that names every operation and needs nothing from elsewhere', async () => {
    const { status, headers, text } = await send(origin(), { path: '/reference' });
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(headers['content-security-policy']).toContain("default-src 'none'");
    expect(operations.filter(({ id }) => !text.includes(`id="${id}"`))).toEqual([]);
    expect(text).not.toMatch(/<script|(?:src|href)="(?!#|\/openapi\.json)/);
  });

  it('has each operation there: no path is unknown', async () => {
    const unknown: string[] = [];
    for (const { method, path: at } of operations) {
      const { status, text } = await send(origin(), { method: method.toUpperCase(), path: at.replaceAll(/[{}]/g, '') });
      if (status === 405 || text.includes('There is nothing at')) unknown.push(`${method} ${at}: ${status}`);
    }
    expect(unknown).toEqual([]);
  });

  it('gives each operation an id of its own and a tag that is explained', () => {
    expect(new Set(operations.map(({ id }) => id)).size).toBe(operations.length);
    expect(operations.filter(({ tag }) => tags[tag] === undefined)).toEqual([]);
  });
});

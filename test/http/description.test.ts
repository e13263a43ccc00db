// `/openapi.json` and `/reference`: what each listener says of itself is what there is.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gateway as gatewayOperations } from '../../scripts/openapi/gateway.ts';
import { management as managementOperations } from '../../scripts/openapi/management.ts';
import type { Listener } from '../../scripts/openapi/operation.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { send } from '../support/request.ts';

const folder = fileURLToPath(new URL('../../src/http', import.meta.url));
let running: TestGateway;

beforeAll(async () => {
  running = await startGateway();
});

afterAll(() => running.close());

const listeners: readonly [name: string, listener: Listener, origin: () => string][] = [
  ['gateway', gatewayOperations, () => running.origin],
  ['management', managementOperations, () => running.management],
];

/** Every route that the sources put, as `post /v1/master/keys/{id}`. */
function routesInSources(): string[] {
  const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(path.join(folder, name), 'utf8'));
  const plain = sources.flatMap((source) =>
    [...source.matchAll(/router\.(get|post|patch|delete)\(\s*'([^']+)'/g)].map(
      ([, method, route]) => `${method} ${route}`,
    ),
  );
  const rules = sources.flatMap((source) =>
    [...source.matchAll(/rulesOf\(master,\s*'([^']+)'/g)].flatMap(([, route]) => [
      `get ${route}`,
      `post ${route}`,
      ...['get', 'patch', 'delete'].map((method) => `${method} ${route}/:ruleId`),
    ]),
  );
  const budgets = sources.flatMap((source) =>
    [...source.matchAll(/budgetOf\(master,\s*'([^']+)'/g)].flatMap(([, route]) => [`get ${route}`, `patch ${route}`]),
  );
  return [...plain, ...rules, ...budgets].map((route) => route.replaceAll(/[:*](\w+)/g, '{$1}'));
}

it('all routes are described, and nothing else', () => {
  const described = listeners.flatMap(([, { operations }]) =>
    operations.map(({ method, path: at }) => `${method} ${at}`),
  );
  expect([...new Set(described)].sort()).toEqual([...new Set(routesInSources())].sort());
});

describe.each(listeners)('the %s', (name, { operations, tags }, origin) => {
  it('serves its document, without a key', async () => {
    const { status, headers, json } = await send(origin(), { path: '/openapi.json' });
    expect([status, headers['content-type']]).toEqual([200, 'application/json; charset=utf-8']);
    expect(json).toMatchObject({ openapi: '3.1.1', info: { title: `Portcullis ${name}` } });
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

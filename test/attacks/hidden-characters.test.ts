// Threat: a name, a description or an id holds marks of direction, zero-width or control characters, and reads as another one on a
// page, in a table or in a log. Defence: what people write is refused at every door, by one function; what programs write loses them.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { management } from '../../src/http/operations/management-operations.ts';
import type { Operation } from '../../src/http/operations/operation.ts';
import { hiddenCharacter, plainText } from '../../src/lib/text.ts';
import { type CommandLine, createCommandLine } from '../cli/command-line.ts';
import { Application, REDIRECT, register, signedIn } from '../http/oauth/application.ts';
import { bodyPlaces, bodyWith, type Step } from '../support/body-places.ts';
import { chat, completionOf, errorOf, hello } from '../support/chat.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { callTool } from '../support/mcp.ts';
import { completion, json, startUpstream, type TestUpstream, upstreamEnv } from '../support/upstream.ts';
import { dump, startOrganizations } from '../tenancy/organizations.ts';
import { bodyOf, pathIdentifiers, type Route } from '../tenancy/routes.ts';

/** Each with its name in an error. */
const HIDDEN: readonly (readonly [string, string])[] = [
  ...['\u202a', '\u202b', '\u202c', '\u202d', '\u202e', '\u2066', '\u2067', '\u2068', '\u2069'],
  ...['\u200e', '\u200f', '\u061c', '\u200b', '\u200c', '\u200d', '\u2060', '\ufeff', '\u00ad', '\u034f', '\u180e'],
  ...['\u0000', '\u0007', '\n', '\t', '\u001b', '\u007f', '\u0085', '\u2028', '\u2029'],
  ...['\ud800', '\udc00', '\ufe0f', '\ufff9', '\u3164', '\u115f', '\uffa0', '\u{e0041}', '\u{e0100}', '\u{1d173}'],
].map((character) => {
  const code = character.codePointAt(0) ?? 0;
  return [character, `U+${code.toString(16).toUpperCase().padStart(4, '0')}`] as const;
});

const PICTURES = ['👩‍💻', '❤️', '👍🏽', '👨‍👩‍👧', '1️⃣', '🇩🇪', '©️', '🏳️‍🌈'];

describe('a character that cannot be seen', () => {
  it.each(HIDDEN.map(([character, name]) => [name, character] as const))(
    'is found and taken out: %s',
    (name, hidden) => {
      for (const text of [
        `pay${hidden}roll`,
        hidden,
        `${hidden}x`,
        `x${hidden}`,
        `👩‍💻${hidden}${hidden}`,
        `مدير${hidden}`,
      ]) {
        expect([text, hiddenCharacter(text)]).toEqual([text, name]);
        expect([text, hiddenCharacter(plainText(text))]).toEqual([text, undefined]);
      }
    },
  );

  it.each(['Zoë', 'Ωμέγα', 'नमस्ते', 'محمد', 'ทีม', '株式会社', 'a b', 'naïve—“quoted”', ...PICTURES])(
    'is none in what people write: %s',
    (text) => {
      expect([hiddenCharacter(text), plainText(text)]).toEqual([undefined, text]);
    },
  );

  it('is one where no picture needs it', () => {
    expect(['👩‍', 'a‍b', '👩‍a', 'x\ufe0f', '👩\ufe0f\ufe0f'].map(hiddenCharacter)).toEqual([
      'U+200D',
      'U+200D',
      'U+200D',
      'U+FE0F',
      'U+FE0F',
    ]);
  });
});

describe('the master API refuses it', async () => {
  const organizations = await startOrganizations();
  const { server, own } = organizations;
  afterAll(() => server.close());

  const writes: Operation[] = management.operations.filter((operation: Operation) => operation.request !== undefined);
  const routeOf = ({ method, path: of }: Operation): Route => ({
    method: method.toUpperCase(),
    path: of.replaceAll(/\{(\w+)\}/g, ':$1'),
  });

  function pathOf(operation: Operation): string {
    const route = routeOf(operation);
    const ids = pathIdentifiers(route).map(({ kind }) => encodeURIComponent(own[kind][0] ?? ''));
    return route.path.replaceAll(/:\w+/g, () => ids.shift() ?? '');
  }

  const baseOf = (operation: Operation): object =>
    operation.path.endsWith('/accept')
      ? { token: 'pcli_none' }
      : (bodyOf(routeOf(operation))?.((kind) => own[kind][0] ?? '') ?? {});

  const pointerOf = (steps: readonly Step[]): string => steps.map((step) => `/${step === '*' ? 'any' : step}`).join('');

  it.each(writes.map((operation) => [operation.id, operation] as const))(
    'in every text of %s',
    async (_, operation) => {
      const { method, request = '' } = operation;
      const before = await dump(organizations);
      const texts = bodyPlaces(request).filter(({ isText }) => isText);
      for (const [index, { steps }] of texts.entries()) {
        const [character, name] = HIDDEN[(index * 7) % HIDDEN.length] ?? ['', ''];
        const body = bodyWith(baseOf(operation), steps, `te${character}xt`);
        const answer = await server.request(method.toUpperCase(), pathOf(operation), { body });
        const pointer = pointerOf(steps);
        expect(answer.body).toEqual({
          error: {
            message: `${pointer} holds ${name}: control characters and characters that cannot be seen are not allowed.`,
            type: 'invalid_request_error',
            param: pointer,
            code: 'invalid_request',
          },
        });
      }
      expect(await dump(organizations)).toEqual(before);
    },
  );

  it('in every parameter of a query', async () => {
    for (const operation of management.operations.filter((each: Operation) => each.key === 'master')) {
      const { method, query = {}, querySchema, request }: Operation = operation;
      for (const parameter of Object.keys(querySchema?.properties ?? query)) {
        const target = `${pathOf(operation)}?${parameter}=${encodeURIComponent('te\u2066xt')}`;
        const answer = await server.request(method.toUpperCase(), target, request === undefined ? {} : { body: {} });
        expect([target, answer.status, answer.text]).toEqual([target, 400, expect.stringContaining(' holds U+2066: ')]);
      }
    }
  });

  it('but takes pictures and every alphabet', async () => {
    const description = `Zoë 株式会社 محمد ${PICTURES.join(' ')}`;
    const answer = await server.request('POST', '/v1/master/keys', {
      body: { projectId: own.project[0], description },
    });
    expect([answer.status, answer.body]).toEqual([201, { key: expect.objectContaining({ description }) }]);
  });
});

describe('the command line refuses it', () => {
  let portcullis: CommandLine;
  beforeAll(async () => {
    portcullis = await createCommandLine();
  });
  afterAll(() => portcullis.close());

  it.each([
    [['keys', 'create', '--description', 'a\u202eb'], '--description'],
    [['projects', 'create', 'a\u202eb'], 'The name'],
    [['organizations', 'create', 'a\u202eb', '--owner', 'ada@example.com'], 'The name'],
    [['rules', 'add', '--organization', 'deny_models', 'x', '--description', 'a\u202eb'], '--description'],
  ])('%s', async (args, place) => {
    expect(await portcullis.run(...args)).toEqual({
      code: 2,
      stdout: '',
      stderr: `portcullis: ${place} holds U+202E: control characters and characters that cannot be seen are not allowed.\n`,
    });
  });

  it('in a policy folder', async () => {
    const folder = path.join(portcullis.folder, 'rules');
    mkdirSync(folder);
    writeFileSync(
      path.join(folder, 'rules.yaml'),
      'organization:\n  rules:\n    first: { ruleType: deny_models, ruleValue: { models: [x] }, description: "a\\u202eb" }\n',
    );
    const { code, stderr } = await portcullis.run('policy', 'plan', folder);
    expect([code, stderr]).toEqual([2, expect.stringContaining('holds U+202E: ')]);
  });

  it('as a revision of a policy folder', async () => {
    const folder = path.join(portcullis.folder, 'others');
    mkdirSync(folder);
    writeFileSync(
      path.join(folder, 'rules.yaml'),
      'organization:\n  rules:\n    first: { ruleType: deny_models, ruleValue: { models: [x] } }\n',
    );
    const { code, stderr } = await portcullis.run('policy', 'apply', folder, '--revision', 'a\u202eb');
    expect([code, stderr]).toEqual([2, expect.stringContaining('holds U+202E: ')]);
  });
});

describe('what programs write loses it', () => {
  let gateway: TestGateway;
  let upstream: TestUpstream;
  beforeAll(async () => {
    upstream = await startUpstream();
    gateway = await startGateway(upstreamEnv('acme', upstream.origin, 'large', 'large=2/8'));
  });
  afterAll(async () => {
    await gateway.close();
    await upstream.close();
  });

  it("an application's name, on the page of consent and in the list of applications", async () => {
    const application = new Application(gateway);
    await application.register({ client_name: 'Clau\u200bde \u202eedoC\u202c' });
    const { page } = await application.askConsent();
    expect(page.text).toContain('<h1>Connect Claude edoC</h1>');
    const nameless = await register(gateway.origin, { client_name: '\u200b\u200b', redirect_uris: [REDIRECT] });
    expect([nameless.status, nameless.body.error]).toEqual([400, 'invalid_client_metadata']);
  });

  it("a provider's id of a model, and what it says of a failure", async () => {
    upstream.begin(json({ ...completion('Hello'), model: 'large\u202e-4\u200b' }));
    const { metadata } = completionOf(await chat(gateway, hello({ model: 'large' })));
    expect(JSON.stringify(metadata)).not.toMatch(/\u202e|\u200b/);
    upstream.begin(json({ error: { message: 'No\u202e such\u2066 tool', type: 'invalid_request_error' } }, 400));
    expect(errorOf(await chat(gateway, hello({ model: 'large' }))).message).toContain('No such tool');
  });

  it('but a prompt, and an answer, stay as they are', async () => {
    const content = 'Ignore\u200b \u202eall\u2069';
    upstream.begin(json(completion(content)));
    const answer = completionOf(await chat(gateway, hello({ model: 'large', messages: [{ role: 'user', content }] })));
    expect(answer.choices[0]?.message.content).toBe(content);
    expect(upstream.received.at(-1)?.text).toContain(content);
    const tool = await callTool(gateway, 'chat', { model: 'large', messages: [{ role: 'user', content }] });
    expect(tool.text).toContain(content);
  });

  it('while a page refuses it in a name that a person typed', async () => {
    const browser = signedIn(gateway);
    const page = '/oauth/interaction/applications';
    await browser.get(page);
    const answered = await browser.submit(page, {
      name: 'Job\u202e',
      key: 'new',
      project: gateway.firstRun.projectId,
      limit: '',
      window: 'month',
      days: '90',
    });
    expect([answered.status, answered.text]).toEqual([400, expect.stringContaining('The name holds U+202E')]);
  });
});

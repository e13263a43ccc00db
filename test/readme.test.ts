// The README is the front door, and each part has a page: what they say of packages, scripts,
// endpoints and places is what there is. (test/generated.test.ts checks the tables that are generated.)
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import manifest from '../package.json' with { type: 'json' };
import ruleSchema from '../schemas/admin/iam-rule.json' with { type: 'json' };
import { PROVIDER_IDS } from '../src/config/upstreams.ts';
import { startGateway } from './support/gateway.ts';
import { documentation, pages, readme, root, tables } from './support/pages.ts';
import { send } from './support/request.ts';

function table(title: string): string[][] {
  const [only, ...others] = tables(title);
  if (only === undefined || others.length > 0) throw new Error(`${others.length + 1} tables begin with ${title}`);
  return only;
}

/** All pages but these. */
const without = (...names: string[]): string =>
  [...pages].flatMap(([each, page]) => (names.includes(each) ? [] : page)).join('\n\n');

const code = (text: string): string => `\`${text}\``;
const firstColumn = (rows: readonly string[][]): string[] => rows.flatMap((row) => row.slice(0, 1));
/** What stands between backticks. */
const coded = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].flatMap(([, inside]) => inside ?? []);

it('is at most 300 lines long', () => {
  expect(readme.split('\n').length).toBeLessThanOrEqual(300);
});

it('has configurations of MCP clients, each by key and all but Cursor by OAuth, that a client can read', () => {
  const [, section = ''] = /\n## MCP clients\n([\s\S]+?)\n# /.exec(documentation) ?? [];
  const configurations = [...section.matchAll(/^```json\n([\s\S]+?)\n```$/gm)].map(([, text = '']) =>
    JSON.stringify(JSON.parse(text)),
  );
  const kinds = configurations.map((text) => [
    text.includes('"http://127.0.0.1:8080/mcp"'),
    /Authorization|x-api-key/.test(text) ? 'key' : 'OAuth',
  ]);
  expect(kinds).toEqual([
    [true, 'key'],
    [true, 'OAuth'],
    [true, 'key'],
    [true, 'key'],
    [true, 'OAuth'],
  ]);
});

describe('the configuration', () => {
  it('names every provider of the catalogue', () => {
    const [, named = ''] = /^`<PROVIDER>` is one of (.*?);/m.exec(documentation) ?? [];
    expect(coded(named)).toEqual(PROVIDER_IDS.map((id) => id.toUpperCase()).sort());
  });
});

it('the rule kinds are those of the schema', () => {
  expect(firstColumn(table(code('ruleType'))).flatMap(coded)).toEqual(ruleSchema.$defs.rule_type.enum);
});

describe('the packages', () => {
  const [runtime = [], pinned = [], development = []] = tables('Package').map(firstColumn);

  it('are exactly those of package.json', () => {
    const names = (group: object): string[] => Object.keys(group).map(code).sort();
    expect(runtime.toSorted()).toEqual(names(manifest.dependencies));
    expect(pinned.toSorted()).toEqual(names(manifest.optionalDependencies));
    expect(development.toSorted()).toEqual(names(manifest.devDependencies));
  });

  it('run on the Node that is named', () => {
    const versions = [...documentation.matchAll(/\bNode (\d+\.\d+\.\d+)/g)].map(([, version]) => version);
    expect(new Set(versions)).toEqual(new Set(Object.values(manifest.optionalDependencies)));
  });

  it('leave to the policy the OPA that is named', () => {
    const pinned = /open-policy-agent\/opa v(\S+)/.exec(readFileSync(path.join(root, 'scripts/opa/go.mod'), 'utf8'));
    expect(documentation).toContain(`\`opa\` ${pinned?.[1]} on the PATH`);
  });
});

describe('the npm scripts', () => {
  const [development] = tables('Command').slice(-1);

  it('are all in the table of development', () => {
    const named = firstColumn(development ?? [])
      .flatMap(coded)
      .filter((command) => command.startsWith('npm '))
      .map((command) => command.replace(/^npm (run )?/, ''));
    expect(named.toSorted()).toEqual(Object.keys(manifest.scripts).sort());
  });

  it('exist wherever one is named', () => {
    const named = [...documentation.matchAll(/\bnpm run ([\w:]+)/g)].map(([, name]) => name ?? '');
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((name) => !(name in manifest.scripts))).toEqual([]);
  });
});

describe('the HTTP API', () => {
  const [ofGateway = [], ...ofManagement] = tables('Endpoint');
  const named = [ofGateway, ofManagement.flat()].map((rows) => firstColumn(rows).flatMap(coded));

  it('is there, on the listener that is named', async () => {
    const running = await startGateway();
    try {
      const origins = [running.origin, running.management];
      const missing: string[] = [];
      for (const [index, origin] of origins.entries()) {
        expect(named[index]?.length).toBeGreaterThan(10);
        for (const endpoint of named[index] ?? []) {
          const [method = '', pathname = ''] = endpoint.split(' ');
          const { status, text } = await send(origin, { method, path: pathname.replaceAll(/[{}]/g, '') });
          // A path that is there may lack the thing that it is asked for, or say that a busy machine is not ready; one that asks
          // for no key wants a body.
          if (![200, 401, 415].includes(status) && !/model_not_found|"not_ready"/.test(text))
            missing.push(`${endpoint}: ${status}`);
        }
      }
      expect(missing).toEqual([]);
    } finally {
      await running.close();
    }
  });
});

describe('the tests that prove a guarantee', () => {
  const DEEP = /^test\/(attacks|cli|faults|process)\b|\.property\.test\.ts$/;

  it('are run by the command that is named: the quick ones by npm test, the long ones by test:deep', () => {
    const wrong = [...documentation.matchAll(/\bnpm (test|run test:deep) -- ((?:test\/[\w./-]+ ?)+)/g)].flatMap(
      ([, command, paths = '']) =>
        paths
          .trim()
          .split(' ')
          .filter((each) => DEEP.test(each) !== (command === 'run test:deep')),
    );
    expect(wrong).toEqual([]);
  });
});

describe('the places', () => {
  it('exist', () => {
    // The tutorials of the policy make files of their own.
    const text = without('policy/README.md', 'policy/plan-and-apply.md');
    const named = [...text.matchAll(/(?<![\w./*<-])(?:src|test|policy|schemas|scripts|\.ci)\/[\w./-]*\w/g)]
      .filter(({ 0: place, index }) => !'<*'.includes(text[index + place.length + 1] ?? ' '))
      .map(([place]) => place);
    expect(named.length).toBeGreaterThan(50);
    expect(named.filter((place) => !existsSync(path.join(root, place)))).toEqual([]);
  });

  it('that the threat model names exist, and it names every attack', () => {
    const folder = path.join(root, 'test/attacks');
    const threats = readFileSync(path.join(folder, 'README.md'), 'utf8');
    const named = [...threats.matchAll(/`([\w./-]+\.test\.ts|\.\.\/\w+)`/g)].map(([, file = '']) => file);
    expect(named.filter((file) => !existsSync(path.join(folder, file)))).toEqual([]);
    const attacks = readdirSync(folder).filter((file) => file.endsWith('.test.ts'));
    expect(attacks.filter((file) => !named.includes(file))).toEqual([]);
  });

  it('under src are all there, each once', () => {
    expect(firstColumn(table('Rank').map((row) => row.slice(1))).sort()).toEqual(
      readdirSync(path.join(root, 'src'))
        .filter((name) => name !== 'README.md')
        .map((name) => code(`src/${name}`))
        .sort(),
    );
  });

  it('that links lead to exist, within a page and on others', () => {
    const anchorsOf = (page: string): string[] =>
      [...page.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
        title
          .toLowerCase()
          .replaceAll(/[^\w -]/g, '')
          .replaceAll(' ', '-'),
      );
    const broken = [...pages].flatMap(([name, page]) =>
      [...page.matchAll(/\]\(([^)\s#]*)(?:#([^)\s]+))?\)/g)]
        .map(([link, to = '', anchor]) => ({
          link: `${name} ${link}`,
          target: to === '' ? name : path.join(path.dirname(name), to),
          anchor,
        }))
        .filter(({ target, anchor }) => {
          const text = pages.get(target) ?? pages.get(path.join(target, 'README.md'));
          if (anchor === undefined) return !existsSync(path.join(root, target));
          return text === undefined || !anchorsOf(text).includes(anchor);
        })
        .map(({ link }) => link),
    );
    expect(broken).toEqual([]);
  });

  it('of comments are to a page of the repository, by a heading of it or the first column of a table', () => {
    const sources = ['src', 'test', 'scripts', 'policy', 'schemas'].flatMap((folder) =>
      readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((name) => /\.(?:ts|rego|json)$/.test(name) && !name.includes('node_modules'))
        .map((name) => readFileSync(path.join(root, folder, name), 'utf8').replace(/\n\s*(?:\*|\/\/) /g, ' ')),
    );
    const cited = sources.flatMap((text) => [...text.matchAll(/([\w/-]+\.md), "([^"]+)"/g)]);
    expect(cited.length).toBeGreaterThan(90);
    const wrong = cited.filter(([, name = '', topic = '']) => {
      const page = pages.get(name) ?? '';
      const topics = [...page.matchAll(/^(?:#+ |\| )([^|\n]+)/gm)].map(([, text = '']) =>
        text.replaceAll('`', '').trim(),
      );
      return !topics.includes(topic);
    });
    expect(wrong.map(([text]) => text)).toEqual([]);
    const elsewhere = ['decisions', 'md'].join('.');
    expect(sources.filter((text) => text.includes(elsewhere))).toEqual([]);
  });

  it('are none of one machine or of a registry: every address is a private or a reserved one', () => {
    const hosts = [...documentation.matchAll(/https?:\/\/([^\s/:'"`)]+)/g)].map(([, host]) => host ?? '');
    expect(hosts.filter((host) => !/^(127\.0\.0\.1|10\.0\.0\.\d+|[\w.-]+\.example)$/.test(host))).toEqual([]);
    // A service has its folders: the page of its deployment names those.
    expect(without('scripts/deploy/README.md')).not.toMatch(/(?<![\w.])\/(?:work|home|root|tmp|var|usr|opt|Users)\//);
  });
});

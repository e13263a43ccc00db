// scripts/deploy: what can be checked of the image, the services and the unit without building or starting them.
// (scripts/deploy/try.sh does both, in .ci/run.)
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import manifest from '../package.json' with { type: 'json' };
import { readConfig } from '../src/config/config.ts';
import { documentation, tables } from './support/pages.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = path.join(root, 'scripts/deploy');
const read = (name: string): string => readFileSync(path.join(folder, name), 'utf8');
const there = (name: string): boolean => existsSync(path.join(root, name));

/** The instructions of the Dockerfile, one a line. */
const instructions = read('Dockerfile')
  .replaceAll(/\\\n/g, ' ')
  .split('\n')
  .filter((line) => /^[A-Z]+ /.test(line));

/** What follows an instruction, each time that it is there. */
const all = (name: string): string[] =>
  instructions.filter((line) => line.startsWith(`${name} `)).map((line) => line.slice(name.length + 1).trim());

/** `A=1 B=2` as an environment. */
const environment = (text: string): Record<string, string> =>
  Object.fromEntries([...text.matchAll(/([A-Z_]+)=(\S+)/g)].map(([, name = '', value = '']) => [name, value]));

const imageEnv = environment(all('ENV').join(' '));

/** Files and folders that are copied into the image from the repository. */
const copied = all('COPY')
  .filter((line) => !line.startsWith('--from'))
  .flatMap((line) => line.split(/\s+/).slice(0, -1));

/** Seconds in which running calls are finished after SIGTERM. */
const grace = readConfig({}).timeouts.shutdownGrace / 1000;

describe('the image', () => {
  it('has two stages, both on the pinned Node', () => {
    const pinned = [...new Set(Object.values(manifest.optionalDependencies))];
    expect(pinned).toHaveLength(1);
    expect(all('FROM')).toEqual([`node:${pinned[0]}-bookworm-slim AS install`, `node:${pinned[0]}-bookworm-slim`]);
  });

  it('keeps the native parts among the optional packages, and takes out the Node that its base has', () => {
    const [install] = all('RUN');
    const nodes = Object.keys(manifest.optionalDependencies).filter((name) => name.startsWith('node-linux-'));
    expect(install).toBe(
      `npm ci --omit=dev && rm -rf ${nodes
        .map((name) => `node_modules/${name}`)
        .reverse()
        .join(' ')}`,
    );
    expect(documentation).not.toMatch(/^npm ci.*--omit=optional/m);
  });

  it('is made of paths that there are, and that the build is given', () => {
    expect(copied.filter((name) => !there(name))).toEqual([]);
    const given = read('Dockerfile.dockerignore')
      .split('\n')
      .flatMap((line) => (line.startsWith('!') ? [line.slice(1)] : []));
    expect(given.filter((name) => !there(name))).toEqual([]);
    expect([...new Set(copied)].sort()).toEqual(given.sort());
  });

  it('holds everything outside of src that src reads', () => {
    const src = path.join(root, 'src');
    const sources = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
    const outside = sources.flatMap((name) =>
      [...readFileSync(path.join(src, name), 'utf8').matchAll(/'((?:\.\.\/)+[^']+)'/g)]
        .map(([, to = '']) => path.relative(root, path.resolve(path.dirname(path.join(src, name)), to)))
        // The data folder is made, and is the volume.
        .filter((to) => !to.startsWith('src') && to !== 'data'),
    );
    const isCopied = (to: string): boolean => copied.some((name) => to === name || to.startsWith(`${name}/`));
    expect(outside).toContain('package.json');
    expect(outside.filter((to) => to !== '' && !isCopied(to))).toEqual([]);
  });

  it('runs as a user that is not root, keeps its data in a volume, and says whether it is well', () => {
    expect(all('USER')).toEqual(['node']);
    expect(all('VOLUME')).toEqual([imageEnv.DATA_DIR]);
    expect(all('HEALTHCHECK')[0]).toContain('/health');
    expect(all('ENTRYPOINT')).toEqual(['["node", "scripts/portcullis.js"]']);
  });

  it('is configured by variables that there are', () => {
    const config = readConfig(imageEnv);
    expect([config.dataDir, config.gateway, config.management]).toEqual([
      '/data',
      { host: '0.0.0.0', port: 8080 },
      { host: '0.0.0.0', port: 8081 },
    ]);
    expect(all('EXPOSE')).toEqual(['8080 8081']);
  });
});

describe('the services', () => {
  const { services, networks } = parse(read('compose.yaml').replaceAll(/\$\{DOMAIN:[^}]*\}/g, 'gateway.example'));
  const { portcullis, proxy } = services;

  it('build the image from this repository', () => {
    const context = path.resolve(folder, portcullis.build.context);
    expect(context).toBe(path.resolve(root));
    expect(existsSync(path.join(context, portcullis.build.dockerfile))).toBe(true);
  });

  it('believe the proxy alone about who the client is, and answer by its name', () => {
    const config = readConfig({ ...imageEnv, ...portcullis.environment });
    expect(config.publicUrl).toBe('https://gateway.example');
    expect(portcullis.environment.TRUSTED_PROXIES).toBe(`${proxy.networks.inside.ipv4_address}/32`);
    expect(networks.inside.ipam.config[0].subnet).toBe('172.31.80.0/24');
  });

  it('let nobody reach the gateway but through the proxy, and the management host but from this machine', () => {
    expect(portcullis.ports).toEqual(['127.0.0.1:8081:8081']);
    expect(proxy.ports).toEqual(['80:80', '443:443']);
    expect(read('Caddyfile')).toMatch(/^\{\$DOMAIN\} \{\n\treverse_proxy portcullis:8080\n\}$/m);
    expect(proxy.volumes[0].split(':')[0]).toBe('./Caddyfile');
  });

  it('keep the data, take no rights, and wait for running calls at a stop', () => {
    expect(portcullis.volumes).toEqual([`data:${imageEnv.DATA_DIR}`]);
    expect([portcullis.read_only, portcullis.cap_drop]).toEqual([true, ['ALL']]);
    expect(Number.parseInt(portcullis.stop_grace_period, 10)).toBeGreaterThan(grace);
  });

  it('take secrets from a file that is in no repository and no image', () => {
    const ignored = readFileSync(path.join(root, '.gitignore'), 'utf8').split('\n');
    expect(ignored).toContain(`/scripts/deploy/${portcullis.env_file}`);
  });
});

describe('the unit of systemd', () => {
  const unit = read('portcullis.service');
  const values = (name: string): string[] =>
    [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value);

  it('starts the launcher, as a user of its own, with its data where systemd makes a folder', () => {
    const [start = ''] = values('ExecStart');
    expect(there(start.split(' ')[2] ?? '')).toBe(true);
    expect(values('User')).toEqual(['portcullis']);
    const { dataDir } = readConfig(environment(values('Environment').join(' ')));
    expect(dataDir).toBe(`/var/lib/${values('StateDirectory')[0]}`);
  });

  it('waits for running calls at a stop', () => {
    expect(Number(values('TimeoutStopSec')[0])).toBeGreaterThan(grace);
  });
});

describe('the alert rules and the dashboard', () => {
  const { groups } = parse(read('alerts.yaml'));
  const rules: { alert: string; expr: string; annotations: Record<string, string> }[] = groups[0].rules;
  const { panels } = JSON.parse(read('grafana-dashboard.json'));
  const queries: { expr: string; legendFormat: string }[] = panels.flatMap(({ targets }: { targets: [] }) => targets);
  const labelsOf = new Map(
    (tables('Metric')[0] ?? []).map(([name = '', , labels = '']) => [
      name.replaceAll('`', ''),
      [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label),
    ]),
  );

  /** Metrics that an expression names and the gateway lacks, and labels that none of its metrics has. */
  function unknownIn(expr: string, text: string): string[] {
    const named = [...expr.matchAll(/\bportcullis_\w+/g)].map(([name]) => name.replace(/_bucket$/, ''));
    const known = new Set(['le', ...named.flatMap((name) => labelsOf.get(name) ?? [])]);
    const labels = [
      ...[...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(', ')),
      ...[...expr.matchAll(/(\w+)(?:=|!=|=~|!~)"/g)].map(([, label = '']) => label),
      ...[...text.matchAll(/\{\{ ?(?:\$labels\.)?(\w+) ?\}\}/g)].map(([, label = '']) => label),
    ];
    return [...named.filter((name) => !labelsOf.has(name)), ...labels.filter((label) => !known.has(label))];
  }

  it('name only metrics and labels that there are', () => {
    const texts = [
      ...rules.map(({ expr, annotations }) => [expr, Object.values(annotations).join(' ')] as const),
      ...queries.map(({ expr, legendFormat }) => [expr, legendFormat] as const),
    ];
    expect(texts.length).toBeGreaterThan(30);
    expect(texts.flatMap(([expr, text]) => unknownIn(expr, text))).toEqual([]);
    expect(unknownIn('sum by (nobody) (portcullis_calls_totals{modle="x"})', '{{ $labels.who }}')).toHaveLength(4);
  });

  it('have a name of its own for each, and a sentence for who is woken', () => {
    const names = [...rules.map(({ alert }) => alert), ...panels.map(({ title }: { title: string }) => title)];
    expect(new Set(names).size).toBe(names.length);
    expect(rules.filter(({ annotations }) => annotations.summary === undefined)).toEqual([]);
  });

  it('name only codes of errors that there are', () => {
    const codes = [...read('alerts.yaml').matchAll(/code="(\w+)"/g)].map(([, code]) => code);
    expect(codes.length).toBeGreaterThan(1);
    expect(codes.filter((code) => !documentation.includes(`\`${code}\``))).toEqual([]);
  });
});

it('the documented files are there', () => {
  const named = [...documentation.matchAll(/scripts\/deploy\/([\w.]*\w)/g)].map(([, name = '']) => name);
  expect(named.length).toBeGreaterThan(0);
  expect(named.filter((name) => !existsSync(path.join(folder, name)))).toEqual([]);
});

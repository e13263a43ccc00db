import path from 'node:path';
import { awaitOutput, startChild } from './children.ts';
import type { Target, TargetName } from './target.ts';

const START_MS = 10_000;

async function startServer(name: TargetName, script: string, env: NodeJS.ProcessEnv = {}): Promise<Target> {
  // stdin stays open as long as we live: the server ends when it closes.
  const child = startChild(process.execPath, [path.join(import.meta.dirname, script)], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, ...env },
  });
  const [port = ''] = await awaitOutput(child, [/^\d+\n/], START_MS);
  return { name, port: Number(port), pid: child.pid ?? 0, streams: name !== 'Koa proxy', equalBodies: false };
}

export const startUpstream = (): Promise<Target> => startServer('upstream', 'upstream.ts');

/** The two proxies that the gateway is measured against. */
export function startProxies(upstream: Target): Promise<Target[]> {
  const env = { BENCH_UPSTREAM: `http://127.0.0.1:${upstream.port}` };
  return Promise.all([startServer('bare proxy', 'bare-proxy.ts', env), startServer('Koa proxy', 'koa-proxy.ts', env)]);
}

// A caller and an administrator who behave well, and an upstream that does, in a process of their own: what the fuzzer takes of its
// own event loop delays none of them. Started by `startProbing`; talks by messages.
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { completion, json, startUpstream } from '../../support/upstream.ts';
import { startDelay } from './delay.ts';
import type { ProbeNews, ProbeOrders } from './probing.ts';

/** Beyond it an answer has not come at all. */
const LOST_MS = 30_000;

const tell = (news: ProbeNews): void => void process.send?.(news);

interface Exchanged {
  readonly status: number;
  readonly text: string;
}

function exchange(
  url: string,
  headers: Readonly<Record<string, string>>,
  body: string | undefined,
  agent: Agent,
): Promise<Exchanged> {
  return new Promise((resolve, reject) => {
    const sent = request(
      url,
      { method: body === undefined ? 'GET' : 'POST', headers, agent, timeout: LOST_MS },
      (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (piece: string) => {
          text += piece;
        });
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }));
        answer.on('error', reject);
      },
    );
    sent.on('timeout', () => sent.destroy(new Error(`no answer in ${LOST_MS} ms`)));
    sent.on('error', (error: NodeJS.ErrnoException) => {
      // Both ends may close an idle connection at any time: as HTTP says, a client asks again on a new one.
      const wasIdle = sent.reusedSocket && error.code === 'ECONNRESET';
      if (wasIdle) resolve(exchange(url, headers, body, new Agent()));
      else reject(error);
    });
    sent.end(body);
  });
}

/** Asks the same again and again, now on a connection that stands and now on a new one. */
async function probe(
  kind: string,
  pid: number,
  pauseMs: number,
  ask: (time: number, agent: Agent) => Promise<Exchanged>,
): Promise<never> {
  const kept = new Agent({ keepAlive: true });
  for (let time = 0; ; time += 1) {
    const agent = time % 2 === 0 ? kept : new Agent();
    const delay = startDelay(pid);
    const startedAt = performance.now();
    const outcome = await ask(time, agent).then(
      ({ status, text }) => (status === 200 ? 'served' : `${status} ${text.slice(0, 300)}`),
      (error: Error) => error.message,
    );
    const tookMs = performance.now() - startedAt;
    tell({ kind, outcome, tookMs, ...delay(tookMs) });
    await sleep(pauseMs);
  }
}

const upstream = await startUpstream();
upstream.begin(json(completion('Well.')));
process.on('message', ({ pid, gateway, management, token, masterToken, model }: ProbeOrders) => {
  const bearer = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  void probe('a chat', pid, 40, (time, agent) => {
    if (time % 1000 === 0) upstream.begin(json(completion('Well.'))); // forgets what it has received
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: `Probe ${time}` }], max_tokens: 20 });
    return exchange(`${gateway}/v1/chat/completions`, bearer, body, agent);
  });
  void probe('/health', pid, 40, (_, agent) => exchange(`${gateway}/health`, {}, undefined, agent));
  const master = { authorization: `Bearer ${masterToken}` };
  void probe('the master API', pid, 250, (_, agent) =>
    exchange(`${management}/v1/master/keys?limit=5`, master, undefined, agent),
  );
});
process.on('disconnect', () => process.exit());
tell({ origin: upstream.origin });

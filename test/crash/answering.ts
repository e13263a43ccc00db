import { setTimeout as sleep } from 'node:timers/promises';
import { chunk, completion, failure, json, type Reply, writeEvents } from '../support/upstream.ts';
import type { Random } from './random.ts';

/** What the load asks of its upstream, in words that the prompt carries. */
interface Asked {
  readonly id: string;
  readonly stream: boolean;
  readonly maxTokens: number;
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function readAsked(body: unknown, text: string): Asked {
  const id = /call-[0-9]+-[0-9]+/.exec(text)?.[0];
  const maxTokens = isRecord(body) ? (body.max_tokens ?? body.max_completion_tokens) : undefined;
  if (id === undefined || !isRecord(body)) throw new Error(`the upstream was sent something else: ${text}`);
  // A key without a limit may ask without a maximum.
  return { id, stream: body.stream === true, maxTokens: typeof maxTokens === 'number' ? maxTokens : 400 };
}

/**
 * Answers in the kind that is asked for, after a while and in pieces; now and then it fails. It charges within the bounds of the
 * request, and often as much as they allow.
 * @param sent bytes of each call's body, by its client's name: as many tokens as its prompt can have
 */
export function answering(random: Random, dispatched: Set<string>, sent: ReadonlyMap<string, number>): Reply {
  return async (response, { json: body, text }) => {
    const { id, stream, maxTokens } = readAsked(body, text);
    dispatched.add(id);
    const most = random.chance(0.2);
    const bytes = sent.get(id) ?? 0;
    const usage = {
      prompt_tokens: most ? bytes : random.between(1, bytes),
      completion_tokens: most ? maxTokens : random.between(0, maxTokens),
    };
    const report = { ...usage, total_tokens: usage.prompt_tokens + usage.completion_tokens };
    const fails = random.chance(0.05);
    const pauses = [random.between(0, 15), random.between(0, 15)] as const;
    await sleep(pauses[0]);
    if (response.destroyed) return;
    if (fails) failure(500, 'No.')(response, { path: '', headers: {}, text: '', json: undefined });
    else if (stream) {
      writeEvents(response, chunk({ role: 'assistant', content: 'Hel' }));
      await sleep(pauses[1]);
      writeEvents(response, chunk({ content: 'lo' }, 'stop'), { ...chunk({}), choices: [], usage: report }, '[DONE]');
      response.end();
    } else json(completion('Hello', { usage: report }))(response, { path: '', headers: {}, text: '', json: undefined });
  };
}

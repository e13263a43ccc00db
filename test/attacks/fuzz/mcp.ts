// Generators of MCP messages: tools that are called well, badly, and by clients of every era.
import type { Random } from '../../crash/random.ts';
import { type Attack, bearer, type Header, JSON_TYPE } from './attack.ts';
import { anyKey, forwardedFor, type Generator } from './calls.ts';
import { bytesOf, plainChat } from './requests.ts';
import { IMAGE_MODELS } from './served.ts';
import type { WorldKey } from './world.ts';

type Fields = Record<string, unknown>;

const VERSION = '2026-07-28';

function toolCall(random: Random, mark: string): Fields {
  const { model, messages, max_tokens } = plainChat(random, mark);
  return random.pick<Fields>([
    { name: 'chat', arguments: { model, messages, max_tokens } },
    { name: 'chat', arguments: { model, messages, max_tokens, temperature: random.next() * 3 } },
    { name: 'chat', arguments: { model, messages: 'none' } },
    {
      name: 'list-models',
      arguments: { limit: random.pick([1, 20, 1000, 1e9, -1]), family: random.pick(['alpha', 'x']) },
    },
    { name: 'list-image-models' },
    { name: random.pick(['', 'none', '__proto__', 'constructor']), arguments: {} },
  ]);
}

const drawing = (random: Random, mark: string): Fields =>
  random.pick<Fields>([
    { name: 'generate-image', arguments: { prompt: mark, model: random.pick(IMAGE_MODELS), n: random.between(0, 6) } },
    {
      name: 'generate-nano-banana',
      arguments: { prompt: mark, filename: random.pick(['a.png', '../a.png', 'a\0.png']) },
    },
  ]);

function message(random: Random, mark: string, tool: typeof toolCall): { body: Fields; headers: Header[] } {
  const isStateless = random.chance(0.4);
  const _meta = {
    ...(random.chance(0.3) ? { progressToken: random.pick<unknown>(['p', 7, 'p'.repeat(100_000), null]) } : {}),
    ...(isStateless
      ? {
          'io.modelcontextprotocol/protocolVersion': VERSION,
          'io.modelcontextprotocol/clientCapabilities': random.chance(0.9) ? {} : [],
        }
      : {}),
  };
  const method = random.chance(0.6)
    ? 'tools/call'
    : random.pick(['tools/list', 'ping', 'initialize', 'server/discover', 'prompts/list', 'notifications/cancelled']);

  const params: Fields = { ...(method === 'tools/call' ? tool(random, mark) : {}), _meta };
  const headers: Header[] = isStateless
    ? [
        ['mcp-protocol-version', random.chance(0.9) ? VERSION : '1999-01-01'],
        ['mcp-method', random.chance(0.9) ? method : 'none'],
        ...(typeof params.name === 'string' && /^[\w-]+$/.test(params.name)
          ? [['mcp-name', params.name] as const]
          : []),
      ]
    : [];
  return {
    body: { jsonrpc: '2.0', id: random.pick<unknown>([1, 'a', 'x'.repeat(10_000), null, {}, 1.5]), method, params },
    headers,
  };
}

const ACCEPTS = [
  'application/json',
  'text/event-stream',
  'application/json, text/event-stream',
  '*/*',
  'text/html',
] as const;

export const mcp: Generator = (attack) => send(attack, toolCall);

export const mcpDrawings: Generator = (attack) => send(attack, drawing);

/** Sends a message with an access token that stands for the key. */
export const mcpWithToken = (attack: Attack, key: WorldKey, token: string): Promise<void> =>
  send(attack, toolCall, { ...key, token });

async function send(attack: Attack, tool: typeof toolCall, key = anyKey(attack)): Promise<void> {
  const { random } = attack;
  const addresses = forwardedFor(random);
  const mark = attack.mark(key, { forwardedFor: addresses, fault: undefined });
  const { body, headers } = message(random, mark, tool);
  await attack.send({
    method: 'POST',
    path: '/mcp',
    headers: [
      random.chance(0.5) ? bearer(key) : ['x-api-key', key.token],
      JSON_TYPE,
      ['accept', random.pick(ACCEPTS)],
      ['x-request-id', mark],
      ...addresses.map((line): Header => ['x-forwarded-for', line]),
      ...headers,
    ],
    body: random.chance(0.7) ? Buffer.from(JSON.stringify(body)) : bytesOf(random, body),
    own: key.token,
    mark,
    ...(random.chance(0.08) ? { leaveAfterMs: random.between(0, 200) } : {}),
  });
}

import { Agent, type IncomingMessage, request } from 'node:http';
import type { Random } from './random.ts';

/** A call whose client has seen all of its answer. */
export interface Acknowledged {
  /** As the client named it, and as the gateway did. */
  readonly clientId: string;
  readonly callId: string;
  readonly keyId: string;
  /** USD, as the answer says. */
  readonly cost: number;
}

export interface LoadKey {
  readonly id: string;
  readonly token: string;
}

/** Clients that call as long as the gateway answers, or until so many calls were made. */
export class Load {
  readonly acknowledged: Acknowledged[] = [];
  readonly statuses = new Map<number, number>();
  /** Bytes of each call's body, by the client's name for it. */
  readonly sent = new Map<string, number>();
  /** Resolves with the first answer: a process that has just started is slow at first. */
  readonly answering: Promise<void>;
  readonly #answered: () => void;
  readonly #random: Random;
  readonly #round: number;
  readonly #keys: readonly [LoadKey, ...LoadKey[]];
  readonly #most: number;
  #calls = 0;
  #over = false;

  constructor(random: Random, round: number, keys: readonly [LoadKey, ...LoadKey[]], most = Number.POSITIVE_INFINITY) {
    this.#most = most;
    this.#random = random;
    this.#round = round;
    this.#keys = keys;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.answering = promise;
    this.#answered = resolve;
  }

  /** Resolves when the gateway is gone, or all calls were made, and every client has noticed. */
  async run(origin: string, clients: number): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: clients });
    await Promise.all(Array.from({ length: clients }, () => this.#client(origin, agent)));
    agent.destroy();
  }

  /** The gateway is about to die: whatever fails from now on is no wonder. */
  end(): void {
    this.#over = true;
  }

  async #client(origin: string, agent: Agent): Promise<void> {
    while (this.#calls < this.#most) {
      try {
        await this.#call(origin, agent);
      } catch (error) {
        if (this.#over) return;
        throw error;
      }
    }
  }

  async #call(origin: string, agent: Agent): Promise<void> {
    this.#calls += 1;
    const clientId = `call-${this.#round}-${this.#calls}`;
    const key = this.#random.pick(this.#keys);
    const stream = this.#random.chance(0.5);
    const leavesAfterMs = this.#random.chance(0.1) ? this.#random.between(0, 20) : undefined;
    const body = {
      model: 'own/metered',
      messages: [{ role: 'user', content: `This is ${clientId}` }],
      ...(stream ? { stream } : {}),
      ...(this.#random.chance(0.8) ? { max_tokens: this.#random.between(1, 300) } : {}),
    };
    const text = JSON.stringify(body);
    this.sent.set(clientId, Buffer.byteLength(text));
    const answer = await exchange(origin, agent, key.token, clientId, text, leavesAfterMs);
    if (answer === 'left') return;
    this.#answered();
    this.statuses.set(answer.status, (this.statuses.get(answer.status) ?? 0) + 1);
    const seen = answer.status === 200 ? acknowledgement(answer.text, stream) : undefined;
    if (seen !== undefined) this.acknowledged.push({ clientId, keyId: key.id, ...seen });
  }
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** One exchange to its end; rejects when the connection breaks before that. */
function exchange(
  origin: string,
  agent: Agent,
  token: string,
  clientId: string,
  body: string,
  leavesAfterMs: number | undefined,
): Promise<Answer | 'left'> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'x-request-id': clientId };
    const outgoing = request(`${origin}/v1/chat/completions`, { method: 'POST', agent, headers }, (incoming) => {
      read(incoming).then(resolve, reject);
    });
    outgoing.on('error', reject);
    outgoing.end(body);
    if (leavesAfterMs === undefined) return;
    setTimeout(() => {
      resolve('left');
      outgoing.destroy();
    }, leavesAfterMs);
  });
}

async function read(incoming: IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = [];
  for await (const bytes of incoming) chunks.push(bytes);
  return { status: incoming.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') };
}

/** What a complete answer says of its call; undefined for one that is not complete, or says in band that it failed. */
function acknowledgement(text: string, stream: boolean): Pick<Acknowledged, 'callId' | 'cost'> | undefined {
  if (stream && !text.endsWith('data: [DONE]\n\n')) return undefined;
  const callId = /"log_id":"(call_[0-9a-f]+)"/.exec(text)?.[1];
  const cost = /"cost":([0-9.e-]+)/.exec(text)?.[1];
  if (callId === undefined || cost === undefined) throw new Error(`an answer without its call and cost: ${text}`);
  return { callId, cost: Number(cost) };
}

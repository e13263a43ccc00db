// One step of the fuzzer: a place from which a generator sends, and where all that comes back is judged.
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Random } from '../../crash/random.ts';
import type { Answer } from '../../support/request.ts';
import { answerFaults, policyFault, servedChat, WELL_FORMED } from './checks.ts';
import { STARVED_MS, stalledMs, threadWaitedMs } from './delay.ts';
import type { StepRecord } from './findings.ts';
import { HONEST } from './honest-faults.ts';
import { clientAddress } from './keys.ts';
import type { Run } from './run.ts';
import type { Marked } from './upstreams.ts';
import type { WorldKey } from './world.ts';

export type Header = readonly [name: string, value: string];

export interface Wanted {
  readonly listener?: 'gateway' | 'management';
  readonly method?: string;
  readonly path: string;
  readonly headers?: readonly Header[];
  readonly body?: Buffer;
  /** The client hangs up after so many milliseconds. */
  readonly leaveAfterMs?: number;
  /** The caller's own secret, which an answer may hold. */
  readonly own?: string;
  /** Of the call in the body. */
  readonly mark?: string;
  /** An address of this machine to send from. */
  readonly localAddress?: string;
}

/** Longer than any bound of the product's: what has not come by then never will. */
export const LOST_MS = 40_000;
/** Refused while it is still sent, a body may meet a closed connection before its answer is read. */
const LARGE_BYTES = 60_000;

/** Attackers come from another address than those who behave, where the system has more than one of its own. */
export const LOCAL = process.platform === 'linux' ? { localAddress: '127.0.0.2' } : {};

export const bearer = ({ token }: Pick<WorldKey, 'token'>): Header => ['authorization', `Bearer ${token}`];
export const JSON_TYPE: Header = ['content-type', 'application/json'];

export class Attack {
  readonly run: Run;
  readonly random: Random;
  readonly record: StepRecord;
  #marks = 0;

  constructor(run: Run, random: Random, record: StepRecord) {
    this.run = run;
    this.random = random;
    this.record = record;
  }

  broken(invariant: string, detail: string): void {
    this.run.findings.report(invariant, detail, this.record);
  }

  /** A new mark for a call with this key: prompts and request ids carry it. */
  mark(
    { spec }: WorldKey,
    {
      forwardedFor = [],
      fault,
      isNamed = true,
    }: { forwardedFor?: readonly string[]; fault?: string | undefined; isNamed?: boolean } = {},
  ): string {
    this.#marks += 1;
    const mark = `mark-${this.record.step}-${this.#marks}`;
    const seed = this.random.between(0, 2 ** 31);
    this.run.marks.set(mark, { key: spec, address: clientAddress(forwardedFor), fault, seed, isNamed, attempts: 0 });
    setTimeout(() => this.run.marks.delete(mark), 2 * LOST_MS).unref();
    return mark;
  }

  /** Sends a request as an HTTP client does, and judges its answer; undefined: there is none to expect. */
  async send(wanted: Wanted): Promise<Answer | undefined> {
    const { method = 'GET', path, listener = 'gateway', headers = [], body } = wanted;
    const head = `${listener}: ${method} ${path}\n${headers.map((header) => header.join(': ')).join('\n')}\n\n`;
    this.record.sent.push(head, body ?? '', '\n');
    const { pid } = this.run.world.serving;
    const waitedBefore = threadWaitedMs(pid);
    const sentAt = performance.now();
    const got = await exchange(this.run.world[listener], wanted);
    if (typeof got === 'string') {
      const ownStallMs = stalledMs(sentAt);
      const isStarved = threadWaitedMs(pid) - waitedBefore > STARVED_MS || ownStallMs > STARVED_MS;
      const isClosed = got === 'closed' && ((body?.length ?? 0) > LARGE_BYTES || isStarved || method === 'HEAD');
      const isExcused = got === 'left' || got === 'unsendable' || isClosed;
      const times = `after ${Math.round(performance.now() - sentAt)} ms, own stall ${Math.round(ownStallMs)} ms`;
      if (!isExcused && (await this.run.isAlive())) {
        const log = wanted.mark === undefined ? [] : this.run.logOf(wanted.mark);
        this.broken(WELL_FORMED, [`${method} ${path.slice(0, 100)}: ${got} ${times}`, ...log].join('\n'));
      }
      return undefined;
    }
    this.#judge(wanted, got);
    return got;
  }

  #judge({ method = 'GET', path, headers = [], own, mark }: Wanted, answer: Answer): void {
    this.run.count(answer.status);
    const call = mark === undefined ? undefined : this.run.marks.get(mark);
    const isLiedTo = call?.fault !== undefined && !(call.fault in HONEST);
    const isLoose = isLiedTo || headers.some(([name, value]) => name === 'x-metadata-form' && value === 'strings');
    for (const [invariant, detail] of answerFaults({ method, path, isLoose }, answer)) this.broken(invariant, detail);
    const secret = this.run.world.secrets.foreignIn(
      `${JSON.stringify(answer.headers)} ${answer.text}`,
      (_, found) => found === own,
    );
    if (secret !== undefined)
      this.broken('no secret is told to others', `${secret.owner}: ${answer.status} ${answer.text.slice(0, 300)}`);
    const served = call === undefined ? undefined : servedChat(answer);
    if (call === undefined || served === undefined) return;
    this.#judgeServed(call, served);
  }

  #judgeServed(call: Marked, served: NonNullable<ReturnType<typeof servedChat>>): void {
    const fault = policyFault(served, call);
    if (fault !== undefined) this.broken('nothing is called that the rules do not permit', `answered by ${fault}`);
    this.run.evidence.acknowledged({ ...served, keyName: call.key.name }, this.record);
  }

  /** A bare connection. What comes on it is kept until it is closed. */
  async connect(listener: 'gateway' | 'management' = 'gateway'): Promise<Socket> {
    const { hostname, port } = new URL(this.run.world[listener]);
    const socket = connect({ host: hostname, port: Number(port), ...LOCAL });
    socket.on('error', () => socket.destroy());
    await new Promise<void>((resolve) => {
      socket.once('connect', resolve);
      socket.once('close', () => resolve());
    });
    return socket;
  }
}

type Failed = 'left' | 'unsendable' | 'closed' | `no answer in ${number} ms` | `no well-formed HTTP: ${string}`;

function parsed(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch {
    return undefined;
  }
}

/** Node's client is strict: an answer that it can read is HTTP. */
function exchange(
  origin: string,
  { method = 'GET', path, headers = [], body, leaveAfterMs, localAddress }: Wanted,
): Promise<Answer | Failed> {
  const { hostname, port, host } = new URL(origin);
  const lines = headers.some(([name]) => name.toLowerCase() === 'host')
    ? headers
    : [['Host', host] as const, ...headers];
  const length =
    body === undefined || headers.some(([name]) => /^(content-length|transfer-encoding)$/i.test(name))
      ? []
      : ['Content-Length', String(body.length)];
  return new Promise((resolve) => {
    const lost = setTimeout(() => finish(`no answer in ${LOST_MS} ms`), LOST_MS);
    const leaving = leaveAfterMs === undefined ? undefined : setTimeout(() => finish('left'), leaveAfterMs);
    const finish = (got: Answer | Failed): void => {
      clearTimeout(lost);
      clearTimeout(leaving);
      resolve(got);
      outgoing?.destroy();
    };
    const failed = (error: NodeJS.ErrnoException): void => {
      // A head that is too long is refused before its method is known: the body that a HEAD must not get ends with the connection.
      const isRefusal = method === 'HEAD' && error.code === 'HPE_CLOSED_CONNECTION';
      const isMalformed = error.code?.startsWith('HPE_') === true && !isRefusal;
      finish(isMalformed ? `no well-formed HTTP: ${error.message}` : 'closed');
    };
    let outgoing: ReturnType<typeof request> | undefined;
    try {
      outgoing = request(
        {
          ...{ hostname, port, method, path, headers: [...lines.flat(), ...length], agent: false, ...LOCAL },
          ...(localAddress === undefined ? {} : { localAddress }),
        },
        (incoming) => {
          const chunks: Buffer[] = [];
          incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
          incoming.on('error', failed);
          incoming.on('end', () => {
            const text = Buffer.concat(chunks).toString('utf8');
            finish({ status: incoming.statusCode ?? 0, headers: incoming.headers, text, json: parsed(text) });
          });
        },
      );
      outgoing.on('error', failed);
      outgoing.end(body);
    } catch {
      finish('unsendable'); // Node's client refuses to write it
    }
  });
}

// Requests written byte by byte on bare connections, and what comes back on them.
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Attack } from './attack.ts';
import { anyKey } from './calls.ts';
import { answerFaults, WELL_FORMED } from './checks.ts';
import { drained } from './drained.ts';
import { chatBody } from './requests.ts';
import { answersIn } from './wire.ts';

type Lines = readonly string[];

export const message = (lines: Lines, body = ''): string => `${lines.join('\r\n')}\r\n\r\n${body}`;

/** A chat's first lines, with a key that may make it. */
export const post = (token: string, ...more: Lines): Lines => [
  'POST /v1/chat/completions HTTP/1.1',
  'Host: 127.0.0.1',
  `Authorization: Bearer ${token}`,
  'Content-Type: application/json',
  ...more,
];

export const length = (text: string): string => `Content-Length: ${Buffer.byteLength(text)}`;

/** Sends pieces one after the other. */
export async function sendOn(
  attack: Attack,
  socket: Socket,
  pieces: Iterable<string | Buffer>,
  pauseMs?: number,
): Promise<void> {
  for (const piece of pieces) {
    if (socket.destroyed) return;
    attack.record.sent.push(piece);
    const taken = socket.write(piece);
    if (pauseMs !== undefined) await sleep(pauseMs);
    else if (!taken) await drained(socket);
  }
}

/** What comes until the product closes the connection, or nothing has come for a while. */
export function received(socket: Socket, quietMs: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  return new Promise((resolve) => {
    const finish = (): void => {
      socket.destroy();
      resolve(Buffer.concat(chunks));
    };
    socket.setTimeout(quietMs, finish);
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.once('close', finish);
    if (socket.destroyed) finish();
  });
}

/** Judges what came back: whole answers, no more of them than were asked for. */
export function judge(attack: Attack, bytes: Buffer, most: number, isHead?: (answer: number) => boolean): number {
  try {
    const answers = answersIn(bytes, isHead);
    for (const answer of answers) {
      attack.run.count(answer.status);
      for (const [invariant, detail] of answerFaults({ method: 'POST', path: '' }, answer))
        attack.broken(invariant, detail);
    }
    const secret = attack.run.secrets.foreignIn(bytes.toString('latin1'));
    if (secret !== undefined) attack.broken('no secret is told to others', secret.owner);
    if (answers.length > most) attack.broken(WELL_FORMED, `${answers.length} answers to ${most} requests`);
    return answers.length;
  } catch (error) {
    attack.broken(WELL_FORMED, `${String(error)} in ${bytes.toString('latin1').slice(0, 300)}`);
    return 0;
  }
}

export async function converse(
  attack: Attack,
  pieces: Iterable<string | Buffer>,
  most: number,
  quietMs = 12_000,
): Promise<number> {
  const socket = await attack.connect(attack.random.chance(0.9) ? 'gateway' : 'management');
  const reading = received(socket, quietMs);
  await sendOn(attack, socket, pieces);
  return judge(attack, await reading, most);
}

export const bodyFor = (attack: Attack): readonly [token: string, body: string] => {
  const key = anyKey(attack);
  return [key.token, JSON.stringify(chatBody(attack.random, attack.mark(key, { isNamed: false })))];
};

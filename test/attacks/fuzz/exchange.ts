// A request at a fake upstream, and the ways to answer it.
import type { ServerResponse } from 'node:http';
import type { Random } from '../../crash/random.ts';
import { type Answer, textOf } from './answers.ts';

/** One request to an upstream, and what it would say if it did not fail. */
export interface Exchange {
  readonly response: ServerResponse;
  readonly random: Random;
  readonly answer: Answer;
  /** What it was sent: its own credential and the caller's prompt, which it may repeat in errors. */
  readonly heard: string;
}

export type Fault = (exchange: Exchange) => void | Promise<void>;

export const typeOf = ({ type }: Answer): string => (type === 'events' ? 'text/event-stream' : 'application/json');

/** The product has closed the connection. */
export const isGone = ({ destroyed, socket }: ServerResponse): boolean => destroyed || socket?.destroyed !== false;

/** Resolves when the text has left, or nobody takes it any more. */
export const write = (response: ServerResponse, text: string | Buffer): Promise<void> =>
  new Promise((done) => {
    if (isGone(response)) return done();
    response.once('close', done);
    response.write(text, () => {
      response.off('close', done);
      done();
    });
  });

export function begin(
  { response, answer }: Exchange,
  headers: Readonly<Record<string, string>> = {},
  status = 200,
): void {
  response.writeHead(status, { 'content-type': typeOf(answer), ...headers });
}

export const good: Fault = (exchange) => {
  begin(exchange);
  exchange.response.end(textOf(exchange.answer));
};

/** A whole answer of other bytes. */
export const say =
  (
    textFor: (exchange: Exchange) => string | Buffer,
    headers: Readonly<Record<string, string>> = {},
    status = 200,
  ): Fault =>
  (exchange) => {
    begin(exchange, headers, status);
    exchange.response.end(textFor(exchange));
  };

/** Bytes on the connection in place of an answer; it is closed after them. */
export const sayRaw =
  (textFor: (exchange: Exchange) => string | Buffer): Fault =>
  (exchange) => {
    const { socket } = exchange.response;
    socket?.end(textFor(exchange));
  };

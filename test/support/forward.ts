import { type IncomingMessage, request, type ServerResponse } from 'node:http';

/** What a reverse proxy does with a request: it sends it on with its own headers added, `Host` and `Origin` as they are. */
export const forwardTo =
  (origin: () => string, added: Readonly<Record<string, string>>) =>
  (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const { hostname, port } = new URL(origin());
    const headers = { ...incoming.headers, ...added };
    const onward = request({ hostname, port, path: incoming.url, method: incoming.method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    onward.on('error', () => outgoing.destroy());
    outgoing.on('close', () => onward.destroy());
    incoming.pipe(onward);
  };

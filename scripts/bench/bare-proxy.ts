// The bar: a proxy that forwards bytes both ways and looks at nothing.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Pool } from 'undici';
import { serve } from './serve.ts';

const pool = new Pool(process.env.BENCH_UPSTREAM ?? '', { connections: 256 });

function forward(request: IncomingMessage, body: Buffer, response: ServerResponse): void {
  const { 'content-type': contentType = '', authorization = '' } = request.headers;
  pool
    .stream(
      { path: request.url ?? '/', method: 'POST', headers: { 'content-type': contentType, authorization }, body },
      ({ statusCode, headers }) => response.writeHead(statusCode, headers),
    )
    .catch(() => response.destroy());
}

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const [first] = chunks;
    forward(request, first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks), response);
  });
});
serve(server);

// The upstream of every target: one fixed answer, or a stream of fixed chunks, each in an event-loop turn of its own.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { serve } from './serve.ts';
import { MODEL, STREAM_CHUNKS, STREAM_TEXT, USAGE } from './workload.ts';

const CREATED = 1_750_000_000;

const ANSWER = Buffer.from(
  JSON.stringify({
    id: 'chatcmpl-bench',
    object: 'chat.completion',
    created: CREATED,
    model: MODEL,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content:
            'A portcullis is a heavy grating that slides down in grooves to close the gateway of a castle. It fell fast.',
          refusal: null,
        },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: USAGE,
  }),
);

const event = (choices: readonly unknown[], more = {}): Buffer => {
  const chunk = {
    id: 'chatcmpl-bench',
    object: 'chat.completion.chunk',
    created: CREATED,
    model: MODEL,
    choices,
    ...more,
  };
  return Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`);
};

const DELTA = event([{ index: 0, delta: { role: 'assistant', content: STREAM_TEXT }, finish_reason: null }]);
const LAST = Buffer.concat([
  event([{ index: 0, delta: {}, finish_reason: 'stop' }]),
  event([], { usage: USAGE }),
  Buffer.from('data: [DONE]\n\n'),
]);

function answer(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': ANSWER.length });
  response.end(ANSWER);
}

function stream(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  let sent = 0;
  const next = (): void => {
    if (response.destroyed) return;
    if (sent === STREAM_CHUNKS) {
      response.end(LAST);
      return;
    }
    sent += 1;
    response.write(DELTA);
    setImmediate(next);
  };
  next();
}

const server = createServer((request: IncomingMessage, response: ServerResponse) => {
  const body: Buffer[] = [];
  request.on('data', (chunk: Buffer) => body.push(chunk));
  request.on('end', () => {
    if (Buffer.concat(body).includes('"stream":true')) stream(response);
    else answer(response);
  });
});
serve(server);

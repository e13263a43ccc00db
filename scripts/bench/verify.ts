import type { Target } from './target.ts';
import { bodyTemplate, CHAT_PATH, requestHeaders, STREAM_CHUNKS, STREAM_TEXT, USAGE } from './workload.ts';

async function ask(target: Target, apiKey: string, stream: boolean): Promise<string> {
  const { before, digits, after } = bodyTemplate(stream);
  const response = await fetch(`http://127.0.0.1:${target.port}${CHAT_PATH}`, {
    method: 'POST',
    headers: requestHeaders(apiKey),
    body: before + '0'.repeat(digits) + after,
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${target.name} answered ${response.status}: ${text.slice(0, 500)}`);
  if (target.name === 'gateway' && response.headers.get('x-decision-id') === null) {
    throw new Error('the gateway answered without a decision');
  }
  return text;
}

/** One call by hand before anything is measured: a target that answers something else would make its figures meaningless. */
export async function verify(target: Target, apiKey: string, streams: boolean): Promise<void> {
  const answer = await ask(target, apiKey, false);
  if (!answer.includes(`"total_tokens":${USAGE.total_tokens}`)) {
    throw new Error(`${target.name} did not pass the answer on: ${answer.slice(0, 500)}`);
  }
  if (!streams) return;
  const deltas = (await ask(target, apiKey, true)).split(STREAM_TEXT).length - 1;
  if (deltas !== STREAM_CHUNKS) throw new Error(`${target.name} streamed ${deltas} of ${STREAM_CHUNKS} chunks`);
}

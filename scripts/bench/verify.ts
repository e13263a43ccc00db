import type { Target } from './target.ts';
import {
  bodyTemplate,
  CHAT_PATH,
  type Kind,
  PACED,
  requestHeaders,
  STREAM_CHUNKS,
  STREAM_TEXT,
  USAGE,
} from './workload.ts';

async function ask(target: Target, apiKey: string, kind: Kind): Promise<{ text: string; headers: Headers }> {
  const { before, digits, after } = bodyTemplate(kind);
  const response = await fetch(`http://127.0.0.1:${target.port}${CHAT_PATH}`, {
    method: 'POST',
    headers: requestHeaders(apiKey),
    body: before + '0'.repeat(digits) + after,
  });
  const text = await response.text();
  const { status, headers } = response;
  if (status !== 200) throw new Error(`${target.name} answered ${status}: ${text.slice(0, 500)}`);
  if (target.name === 'gateway' && headers.get('x-decision-id') === null) {
    throw new Error('the gateway answered without a decision');
  }
  return { text, headers };
}

/** Calls by hand before anything is measured: a target that answers something else would make its figures meaningless. */
export async function verify(target: Target, apiKey: string): Promise<void> {
  const { text } = await ask(target, apiKey, 'whole');
  if (!text.includes(`"total_tokens":${USAGE.total_tokens}`)) {
    throw new Error(`${target.name} did not pass the answer on: ${text.slice(0, 500)}`);
  }
  if (target.equalBodies && (await ask(target, apiKey, 'whole')).headers.get('x-cache') !== 'HIT') {
    throw new Error('the gateway does not answer equal requests from its cache');
  }
  if (!target.streams) return;
  for (const kind of ['burst', PACED] as const) {
    const deltas = (await ask(target, apiKey, kind)).text.split(STREAM_TEXT).length - 1;
    if (deltas !== STREAM_CHUNKS) throw new Error(`${target.name} streamed ${deltas} of ${STREAM_CHUNKS} chunks`);
  }
}

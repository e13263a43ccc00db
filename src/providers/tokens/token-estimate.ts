import type { Worker } from 'node:worker_threads';
import { guessTokens } from '../../domain/usage.ts';
import { startThread, Threads } from '../../lib/threads.ts';
import type { CountAnswer, Counted, CountMessage } from './count-tokens.ts';
import { characterEnd } from './token-pieces.ts';

/** Text whose tokens are to be counted. */
export interface TextToCount {
  readonly texts: readonly string[];
  /** UTF-8 bytes of further text that nobody kept. */
  readonly omittedBytes: number;
}

interface TokenEstimate {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** True when not all of the text was counted. */
  readonly rough: boolean;
}

/** Counts tokens (o200k_base) outside the serving thread, for calls of which no provider told (src/core/README.md, "usage"). */
export interface TokenEstimator {
  /**
   * At most 1,048,576 characters are counted, half of them of the completion, and for at most a quarter of a second; the rest
   * is estimated by the ratio of what was. Where nothing could be counted in time it is one token for every four bytes.
   * Never rejects.
   */
  estimate(prompt: TextToCount, completion: TextToCount): Promise<TokenEstimate>;
  close(): Promise<void>;
}

export interface TokenEstimatorOptions {
  /** Milliseconds of counting for one call. */
  readonly budgetMs?: number;
  /** Milliseconds for one call, waiting and the start of the thread included. */
  readonly limitMs?: number;
  /** Calls that may wait for the one that is counted. */
  readonly maxWaiting?: number;
  readonly startWorker?: () => Worker;
}

const MAX_CHARACTERS = 1024 * 1024;

/** Calls are counted in their order, for all organizations together. */
const EVERYONE = '';

/** One thread, started when it is first needed, and again after it died. */
export function createTokenEstimator({
  budgetMs = 250,
  limitMs = 10_000,
  maxWaiting = 256,
  startWorker = () => startThread('countTokens'),
}: TokenEstimatorOptions = {}): TokenEstimator {
  const threads = new Threads<CountMessage, CountAnswer>({ start: startWorker, most: 1, maxWaiting, limitMs });

  async function counted(message: CountMessage): Promise<CountAnswer | undefined> {
    const expiry = new AbortController();
    const timer = setTimeout(() => expiry.abort(), limitMs);
    try {
      const answer = threads.ask(message, { share: EVERYONE, signal: expiry.signal });
      return await Promise.race([answer, aborted(expiry.signal)]);
    } catch {
      return undefined;
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    async estimate(prompt, completion) {
      const said = keep(completion.texts, MAX_CHARACTERS / 2);
      const asked = keep(prompt.texts, MAX_CHARACTERS - said.length);
      const answer = await counted({ prompt: asked.texts, completion: said.texts, budgetMs });
      return estimateOf(answer, asked.bytes + prompt.omittedBytes, said.bytes + completion.omittedBytes);
    },
    close: () => threads.close(),
  };
}

interface Kept {
  readonly texts: readonly string[];
  /** Characters of them. */
  readonly length: number;
  /** UTF-8 bytes of all texts, kept or not. */
  readonly bytes: number;
}

function keep(texts: readonly string[], maxLength: number): Kept {
  const kept: string[] = [];
  let length = 0;
  let bytes = 0;
  for (const text of texts) {
    bytes += Buffer.byteLength(text);
    const part = text.slice(0, characterEnd(text, Math.min(text.length, maxLength - length)));
    if (part !== '') kept.push(part);
    length += part.length;
  }
  return { texts: kept, length, bytes };
}

function estimateOf(answer: CountAnswer | undefined, promptBytes: number, completionBytes: number): TokenEstimate {
  const prompt = answer?.prompt ?? NOTHING;
  const completion = answer?.completion ?? NOTHING;
  return {
    promptTokens: tokensOf(prompt, promptBytes),
    completionTokens: tokensOf(completion, completionBytes),
    rough: prompt.bytes < promptBytes || completion.bytes < completionBytes,
  };
}

const NOTHING: Counted = { tokens: 0, bytes: 0 };

/** Tokens of text of which only the beginning was counted. */
const tokensOf = ({ tokens, bytes }: Counted, allBytes: number): number =>
  bytes === 0 ? guessTokens(allBytes) : Math.ceil((tokens * allBytes) / bytes);

/** Rejects when the signal aborts. */
function aborted(signal: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  signal.addEventListener('abort', () => reject(new Error('No time is left to count tokens.')), { once: true });
  promise.catch(() => {});
  return promise;
}

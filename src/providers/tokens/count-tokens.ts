import { clearMergeCache, countTokens, setMergeCacheSize } from 'gpt-tokenizer/encoding/o200k_base';
import type { Job } from '../../lib/threads.ts';
import { pieces } from './token-pieces.ts';

/** Texts of one call. */
export interface CountMessage {
  readonly prompt: readonly string[];
  readonly completion: readonly string[];
  /** Milliseconds after which no further piece is begun. */
  readonly budgetMs: number;
}

/** Tokens counted, from the beginning of the texts: all of them, unless time was up. */
export interface Counted {
  readonly tokens: number;
  /** In UTF-8. */
  readonly bytes: number;
}

export interface CountAnswer {
  readonly prompt: Counted;
  readonly completion: Counted;
}

/** `<|endoftext|>` and its like are text as any other. */
const ALL_TEXT = { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() };

// Words come again within a call; the default would keep 100,000 pieces of callers' texts.
setMergeCacheSize(1000);

function count(texts: readonly string[], until: number): Counted {
  let tokens = 0;
  let bytes = 0;
  for (const text of texts) {
    for (const piece of pieces(text)) {
      tokens += countTokens(piece, ALL_TEXT);
      bytes += Buffer.byteLength(piece);
      if (performance.now() >= until) return { tokens, bytes };
    }
  }
  return { tokens, bytes };
}

export const startJob = (): Job<CountMessage, CountAnswer> => ({
  answer({ prompt, completion, budgetMs }) {
    const begun = performance.now();
    // The completion first: its tokens are the more expensive ones. It cannot take the prompt's half.
    const said = count(completion, begun + budgetMs / 2);
    const answer = { prompt: count(prompt, begun + budgetMs), completion: said };
    clearMergeCache();
    return answer;
  },
});

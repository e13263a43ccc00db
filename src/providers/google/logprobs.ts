import { isRecord, record } from '../wire/json.ts';

type Fields = Readonly<Record<string, unknown>>;

/** A choice's `logprobs`: an index signature as the generated type has it. */
export interface Logprobs {
  [field: string]: unknown;
}

const toToken = ({ token = '', logProbability = 0 }: Fields): Fields => ({
  token,
  logprob: logProbability,
  bytes: null,
});

/** `logprobsResult` in OpenAI's form: the chosen tokens, each with the likeliest ones at its place. */
export function toLogprobs(result: unknown): { logprobs?: Logprobs } {
  if (!isRecord(result) || !Array.isArray(result.chosenCandidates)) return {};
  const tops: unknown[] = Array.isArray(result.topCandidates) ? result.topCandidates : [];
  const content = result.chosenCandidates.map((chosen: unknown, position) => {
    const { candidates } = record(tops[position]);
    const likeliest = Array.isArray(candidates) ? candidates.filter(isRecord) : [];
    return { ...toToken(record(chosen)), top_logprobs: likeliest.map(toToken) };
  });
  return { logprobs: { content, refusal: null } };
}

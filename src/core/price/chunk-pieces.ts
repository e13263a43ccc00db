import type { ChunkChoice, ChunkDelta } from '../../generated/types.ts';
import type { UpstreamChunk } from '../../providers/wire/adapter.ts';

/**
 * A chunk as clients read it, who look at the first choice of a chunk and the first tool call of a delta only: one choice in each
 * piece, and at most one tool call (src/core/README.md, "stream deltas"). Most chunks are one piece already.
 */
export function chunkPieces(chunk: UpstreamChunk): readonly UpstreamChunk[] {
  const { choices } = chunk;
  const [first] = choices;
  if (choices.length === 1 && first !== undefined && callsIn(first) <= 1) return [chunk];
  return choices.flatMap(choicePieces).map((choice) => ({ ...chunk, choices: [choice] }));
}

const callsIn = ({ delta }: ChunkChoice): number => delta.tool_calls?.length ?? 0;

/** The first piece has all that is said next to the calls; the last one ends the choice, if anything does. */
function choicePieces(choice: ChunkChoice): readonly ChunkChoice[] {
  const { delta, index, finish_reason: end } = choice;
  const [call, ...others] = delta.tool_calls ?? [];
  if (call === undefined || others.length === 0) return [choice];
  const pieces: ChunkChoice[] = [
    { ...choice, delta: { ...delta, tool_calls: [call] }, finish_reason: null },
    ...others.map((other): ChunkChoice => ({ index, delta: { tool_calls: [other] }, finish_reason: null })),
  ];
  return pieces.with(-1, { ...(pieces.at(-1) ?? choice), finish_reason: end });
}

/** Thoughts under both names that clients read, `reasoning` and `reasoning_content`; in place. */
export function nameThoughts(said: Thoughtful): void {
  if (typeof said.reasoning === 'string') said.reasoning_content ??= said.reasoning;
}

type Thoughtful = Pick<ChunkDelta, 'reasoning' | 'reasoning_content'>;

import type { ChunkDelta } from '../generated/types.ts';
import { annotations, MAX_BLOCKS } from './anthropic-answer.ts';
import { ANSWER_TOOL } from './anthropic-format.ts';
import { encryptedDetail, textDetail } from './anthropic-reasoning.ts';
import { isRecord } from './json.ts';
import { badResponse } from './upstream-error.ts';

type Fields = Readonly<Record<string, unknown>>;

/** A block of a stream that has begun and not ended. */
export interface OpenBlock {
  /** What its beginning says. */
  begin(): ChunkDelta[];
  /** What a piece of it says; nothing for a piece of an unknown type. */
  add(delta: Fields): ChunkDelta[];
  /** What is left to say at its end. */
  end(): ChunkDelta[];
}

/** What the blocks of one stream share. */
export interface Spoken {
  /** Length of the content so far. */
  contentLength: number;
  /** Tool calls begun; the next one's index, which is not its block's. */
  calls: number;
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** @param index the block's, which its thoughts keep. @throws UpstreamError `bad_response` */
export function openBlock(block: Fields, index: number, spoken: Spoken): OpenBlock {
  switch (block.type) {
    case 'text':
      return textBlock(block, spoken);
    case 'thinking':
      return thinkingBlock(block, index);
    case 'redacted_thinking':
      return { ...SILENT, begin: () => [{ reasoning_details: [encryptedDetail(index, text(block.data))] }] };
    case 'tool_use':
      return block.name === ANSWER_TOOL ? answerBlock(block, spoken) : toolBlock(block, spoken);
    default:
      return SILENT;
  }
}

/** The provider's own tools and their results. */
const SILENT: OpenBlock = { begin: () => [], add: () => [], end: () => [] };

const contentDelta = (content: string, spoken: Spoken): ChunkDelta[] => {
  spoken.contentLength += content.length;
  return content === '' ? [] : [{ content }];
};

function textBlock(block: Fields, spoken: Spoken): OpenBlock {
  const start = spoken.contentLength;
  const citations: unknown[] = Array.isArray(block.citations) ? block.citations.slice(0, MAX_BLOCKS) : [];
  return {
    begin: () => contentDelta(text(block.text), spoken),
    add(delta) {
      if (delta.type === 'text_delta') return contentDelta(text(delta.text), spoken);
      if (delta.type === 'citations_delta' && citations.length < MAX_BLOCKS) citations.push(delta.citation);
      return [];
    },
    end() {
      const sources = annotations(citations, start, spoken.contentLength);
      return sources.length === 0 ? [] : [{ annotations: sources }];
    },
  };
}

function thinkingBlock(block: Fields, index: number): OpenBlock {
  const thought = (piece: string): ChunkDelta[] =>
    piece === '' ? [] : [{ reasoning: piece, reasoning_details: [textDetail(index, { text: piece })] }];
  const signed = (signature: string): ChunkDelta[] =>
    signature === '' ? [] : [{ reasoning_details: [textDetail(index, { signature })] }];
  return {
    begin: () => [...thought(text(block.thinking)), ...signed(text(block.signature))],
    add(delta) {
      if (delta.type === 'thinking_delta') return thought(text(delta.thinking));
      return delta.type === 'signature_delta' ? signed(text(delta.signature)) : [];
    },
    end: () => [],
  };
}

/** The pieces of a call's input; some providers send it whole at the beginning, and an empty one may come in no piece at all. */
function inputOf(block: Fields, say: (piece: string) => ChunkDelta[]): Pick<OpenBlock, 'add' | 'end'> {
  let said = false;
  return {
    add(delta) {
      const piece = delta.type === 'input_json_delta' ? text(delta.partial_json) : '';
      if (piece === '') return [];
      said = true;
      return say(piece);
    },
    end: () => (said ? [] : say(JSON.stringify(isRecord(block.input) ? block.input : {}))),
  };
}

function toolBlock(block: Fields, spoken: Spoken): OpenBlock {
  const { id, name } = block;
  if (typeof id !== 'string' || typeof name !== 'string') throw badResponse('The provider sent a malformed chunk.');
  const index = spoken.calls;
  spoken.calls += 1;
  return {
    begin: () => [{ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }],
    ...inputOf(block, (piece) => [{ tool_calls: [{ index, function: { arguments: piece } }] }]),
  };
}

const answerBlock = (block: Fields, spoken: Spoken): OpenBlock => ({
  begin: () => [],
  ...inputOf(block, (piece) => contentDelta(piece, spoken)),
});

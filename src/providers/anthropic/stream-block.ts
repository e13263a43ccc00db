import type { ChunkDelta } from '../../generated/types.ts';
import { isRecord } from '../wire/json.ts';
import { badResponse } from '../wire/upstream-error.ts';
import { annotations, type Source, sourceOf } from './answer.ts';
import { ANSWER_TOOL } from './format.ts';
import { encryptedDetail, textDetail } from './reasoning.ts';

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
  /** Length of the sources so far, which wait for the ends of their blocks. */
  citedLength: number;
}

/** Characters of the sources that one stream may name. */
const MAX_CITED_LENGTH = 512 * 1024;
const CITATION_OVERHEAD = 128;

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** @param index the block's, which its thoughts keep. @throws UpstreamError `bad_response` */
export function openBlock(block: Fields, index: number, spoken: Spoken): OpenBlock {
  switch (block.type) {
    case 'text':
      return textBlock(block, spoken);
    case 'thinking':
      return thinkingBlock(block, index);
    case 'redacted_thinking':
      return redactedBlock(text(block.data), index);
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
  const first = text(block.text);
  const sources: Source[] = [];
  const cite = (citation: unknown): void => {
    const source = sourceOf(citation);
    if (source === undefined || spoken.citedLength > MAX_CITED_LENGTH) return;
    spoken.citedLength += CITATION_OVERHEAD + source.url.length + source.title.length;
    if (spoken.citedLength <= MAX_CITED_LENGTH) sources.push(source);
  };
  if (Array.isArray(block.citations)) block.citations.forEach(cite);
  return {
    begin: () => contentDelta(first, spoken),
    add(delta) {
      if (delta.type === 'text_delta') return contentDelta(text(delta.text), spoken);
      if (delta.type === 'citations_delta') cite(delta.citation);
      return [];
    },
    end: () => (sources.length === 0 ? [] : [{ annotations: annotations(sources, start, spoken.contentLength) }]),
  };
}

const redactedBlock = (data: string, index: number): OpenBlock => ({
  ...SILENT,
  begin: () => [{ reasoning_details: [encryptedDetail(index, data)] }],
});

function thinkingBlock(block: Fields, index: number): OpenBlock {
  const thought = (piece: string): ChunkDelta[] =>
    piece === '' ? [] : [{ reasoning: piece, reasoning_details: [textDetail(index, { text: piece })] }];
  const signed = (signature: string): ChunkDelta[] =>
    signature === '' ? [] : [{ reasoning_details: [textDetail(index, { signature })] }];
  const begun = [...thought(text(block.thinking)), ...signed(text(block.signature))];
  return {
    begin: () => begun,
    add(delta) {
      if (delta.type === 'thinking_delta') return thought(text(delta.thinking));
      return delta.type === 'signature_delta' ? signed(text(delta.signature)) : [];
    },
    end: () => [],
  };
}

/** The pieces of a call's input; some providers send it whole at the beginning, and an empty one may come in no piece at all. */
function inputOf({ input }: Fields, say: (piece: string) => ChunkDelta[]): Pick<OpenBlock, 'add' | 'end'> {
  // As text, which takes a fraction of the memory of what it says until the block ends.
  const whole = JSON.stringify(isRecord(input) ? input : {});
  let said = false;
  return {
    add(delta) {
      const piece = delta.type === 'input_json_delta' ? text(delta.partial_json) : '';
      if (piece === '') return [];
      said = true;
      return say(piece);
    },
    end: () => (said ? [] : say(whole)),
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

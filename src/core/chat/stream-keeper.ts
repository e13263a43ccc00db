import { entryOf } from '../../lib/text.ts';
import type { UpstreamChunk } from '../../providers/wire/adapter.ts';
import { record } from '../../providers/wire/json.ts';
import type { KeptStream } from './response-cache.ts';

type Chunk = Pick<UpstreamChunk, 'choices' | 'fields'>;

/** A chunk as it is kept: its text alone, when there is nothing else in it; else as JSON, which takes a fraction of the objects. */
type Piece = string | { readonly json: string };

/** Characters beyond which a stream is not kept: many streams run at once. */
const MAX_CHARACTERS = 256 * 1024;
/** What a piece takes besides its text. */
const PIECE_OVERHEAD = 64;

/** The text of a chunk that says nothing but a piece of the first choice's content, and perhaps again whose it is. */
function plainText({ choices }: Chunk): string | undefined {
  const [choice] = choices;
  if (choice === undefined || choices.length > 1 || choice.index !== 0 || choice.finish_reason !== null)
    return undefined;
  const { delta } = choice;
  for (const name in delta) if (name !== 'content' && name !== 'role') return undefined;
  const fields = record(choice);
  for (const name in fields)
    if (name !== 'index' && name !== 'delta' && entryOf(fields, name) !== null) return undefined;
  return typeof delta.content === 'string' ? delta.content : undefined;
}

/** Records a stream while it passes, so that it can be given again. */
export class StreamKeeper {
  #pieces: Piece[] = [];
  #characters = 0;
  /** Of the first chunk: fields outside the choices stand in every one. */
  #fields: UpstreamChunk['fields'] = {};
  /** What they add to each chunk when the stream is given again. */
  #fieldsLength = 0;

  add(chunk: Chunk): void {
    if (this.#characters > MAX_CHARACTERS) return;
    const isFirst = this.#pieces.length === 0;
    if (isFirst) {
      this.#fields = chunk.fields;
      this.#fieldsLength = JSON.stringify(chunk.fields).length;
    }
    const text = isFirst ? undefined : plainText(chunk); // The role must stand in the first.
    const piece = text ?? { json: JSON.stringify({ choices: chunk.choices, fields: chunk.fields }) };
    this.#characters += PIECE_OVERHEAD + this.#fieldsLength + (typeof piece === 'string' ? piece : piece.json).length;
    this.#pieces.push(piece);
    if (this.#characters > MAX_CHARACTERS) this.giveUp();
  }

  /** Keeps nothing of it. */
  giveUp(): void {
    this.#characters = Number.POSITIVE_INFINITY;
    this.#pieces = [];
    this.#fields = {};
  }

  /** The whole stream; undefined when it was too long to be kept. */
  kept(): KeptStream | undefined {
    if (this.#characters > MAX_CHARACTERS) return undefined;
    const [pieces, fields] = [this.#pieces, this.#fields];
    return { kind: 'stream', characters: this.#characters, chunks: () => replay(pieces, fields) };
  }
}

function* replay(pieces: readonly Piece[], fields: Chunk['fields']): Generator<Chunk, void, undefined> {
  for (const piece of pieces) {
    if (typeof piece === 'string') {
      yield { choices: [{ index: 0, delta: { content: piece }, finish_reason: null }], fields };
    } else {
      const chunk: Chunk = JSON.parse(piece.json);
      yield chunk;
    }
  }
}

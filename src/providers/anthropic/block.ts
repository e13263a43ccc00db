import type { ContentPart } from '../../generated/types.ts';
import { isRecord } from '../wire/json.ts';

/** A content block of the Messages API. */
export interface Block {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A caller's `cache_control` (its `ttl` too) as the field of a block; nothing for anything that is none. */
export const cacheControl = (value: unknown): { readonly cache_control?: Readonly<Record<string, unknown>> } =>
  isRecord(value) ? { cache_control: value } : {};

/** A text block; none for a text of nothing but blanks, which the API refuses. */
export const textBlocks = (text: string, cache?: ContentPart['cache_control']): Block[] =>
  text.trim() === '' ? [] : [{ type: 'text', text, ...cacheControl(cache) }];

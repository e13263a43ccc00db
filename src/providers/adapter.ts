import type { Usage } from '../domain/usage.ts';
import type { ChatChoice, ChatRequest, ChunkChoice } from '../generated/types.ts';
import type { AddressPolicy } from '../net/address-policy.ts';
import type { GatheredResponse, StreamedResponse } from '../net/exchange.ts';
import type { OutboundRequest } from '../net/transport.ts';
import type { UpstreamError } from './upstream-error.ts';

/** One attempt to complete a chat. */
export interface ChatCall {
  /** The caller's request, validated. Fields nobody here knows are in it too and are forwarded. */
  readonly request: ChatRequest;
  /** The mapping's id of the model at its provider: replaces the request's `model`. */
  readonly externalId: string;
  /** The maximum that the gateway sets for a caller that named none (decisions.md, section 3, "does not fit"). */
  readonly maxOutputTokens?: number;
}

/** A base URL, taken apart once. */
export interface BaseUrl {
  readonly origin: string;
  /** Without a final `/`; empty for the root. */
  readonly path: string;
}

/** Where an attempt goes, and with which secret. */
export interface Endpoint {
  readonly base: BaseUrl;
  readonly addresses: AddressPolicy;
  /** Absent: the upstream asks for none. */
  readonly secret?: string;
}

interface UpstreamAnswer<Choice> {
  /** The upstream's own id of the model that answered. */
  readonly model: string | undefined;
  /** The first delta of every index carries the role. At least one, for a whole answer; may be empty for a chunk that carries usage only. */
  readonly choices: readonly Choice[];
  /** Absent when the provider gave none. In a stream the last one counts. */
  readonly usage: Usage | undefined;
  /** Every other top-level field, but for those that the gateway writes: id, object, created, metadata. */
  readonly fields: Readonly<Record<string, unknown>>;
}

export type UpstreamCompletion = UpstreamAnswer<ChatChoice>;
export type UpstreamChunk = UpstreamAnswer<ChunkChoice>;

/** A pure translation between OpenAI's form and a provider's. It opens no connection, retries nothing, knows no HTTP server. */
export interface Adapter {
  buildRequest(call: ChatCall, endpoint: Endpoint): OutboundRequest;
  /** A 2xx answer to a request without `stream`. @throws UpstreamError `bad_response` */
  parseResponse(response: GatheredResponse): UpstreamCompletion;
  /**
   * A streamed 2xx answer. Ends normally only when every choice has finished; then the connection is kept.
   * @throws UpstreamError `bad_response`, and what the transport throws
   */
  parseStream(response: StreamedResponse): AsyncIterable<UpstreamChunk>;
  /** Any answer that is no success, and a gathered answer to a request with `stream`. */
  parseError(response: GatheredResponse, secret: string | undefined): UpstreamError;
}

import type { Mapping } from '../../domain/model.ts';
import type { Usage } from '../../domain/usage.ts';
import type {
  ChatChoice,
  ChatRequest,
  ChunkChoice,
  ImageRequest,
  ModerationRequest,
  ModerationResult,
} from '../../generated/types.ts';
import type { AddressPolicy } from '../../net/address-policy.ts';
import type { GatheredResponse, StreamedResponse } from '../../net/exchange.ts';
import type { OutboundRequest } from '../../net/transport.ts';
import type { UpstreamError } from './upstream-error.ts';

/** One attempt to complete a chat. */
export interface ChatCall {
  /** The caller's request, validated. */
  readonly request: ChatRequest;
  /** Its `externalId` replaces the request's `model`; its limits and capabilities say what the provider takes. */
  readonly mapping: Mapping;
  /** Fields beyond those of the wire format that the operator lets through to the provider. Absent: none. */
  readonly namedFields?: ReadonlySet<string>;
  /**
   * The maximum that the gateway sets for a key with a spend limit, in place of the caller's (src/admin/README.md, "does not fit").
   */
  readonly maxOutputTokens?: number;
}

/** A part of a request that a provider cannot take, or that would cost more, or call another model, than the gateway can tell. */
export interface Unsupported {
  /** JSON pointer of the field. */
  readonly param: string;
  readonly message: string;
}

/** A base URL, taken apart once. */
export interface BaseUrl {
  readonly origin: string;
  /** Without a final `/`; empty for the root. */
  readonly path: string;
}

/** Destination of an attempt, and its secret. */
export interface Endpoint {
  readonly base: BaseUrl;
  readonly addresses: AddressPolicy;
  /** Absent: the upstream asks for none. */
  readonly secret?: string;
}

interface UpstreamAnswer<Choice> {
  /** The upstream's own id of the model that answered. */
  readonly model: string | undefined;
  /**
   * The first delta of every index carries the role. At least one, for a whole answer; may be empty for a chunk that carries
   * usage only.
   */
  readonly choices: readonly Choice[];
  /** Absent when the provider gave none. In a stream the last one counts. */
  readonly usage: Usage | undefined;
  /** Every other top-level field, but for those that the gateway writes: id, object, created, metadata. */
  readonly fields: Readonly<Record<string, unknown>>;
}

export type UpstreamCompletion = UpstreamAnswer<ChatChoice>;
export type UpstreamChunk = UpstreamAnswer<ChunkChoice>;

/** One attempt to make images. */
export interface ImageCall {
  readonly request: ImageRequest;
  readonly mapping: Mapping;
  /** As of a chat. */
  readonly namedFields?: ReadonlySet<string>;
}

/** A generated image. */
export interface UpstreamImage {
  /** Base64 of the file; what `url` would show. One of the two is there. */
  readonly base64?: string;
  readonly url?: string;
  readonly revisedPrompt?: string;
}

export interface UpstreamImages {
  /** The upstream's own id of the model that answered. */
  readonly model: string | undefined;
  /** At least one. */
  readonly images: readonly UpstreamImage[];
  readonly usage: Usage | undefined;
  /** Every other top-level field but for those that the gateway writes: created, data, usage, metadata. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A draft of an image that is being made. */
export interface PartialImage {
  readonly base64: string;
  /** 0 for the first. */
  readonly position: number;
  /** Every other field, but for those that the gateway writes: type, created_at. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Translation of image generation. */
export interface ImageTranslation extends WholeTranslation<ImageCall, UpstreamImages> {
  /** Fields of a request that the model does not honour, or only roughly: they are left out. */
  dropped(call: ImageCall): readonly string[];
  /** Whether a model is known to take `aspect_ratio`. */
  takesAspectRatio(mapping: Mapping): boolean;
  /** Absent: the provider gives no partial images. */
  readonly partials?: {
    /** Whether the request asks for them and the model gives them: then `buildRequest` asks for a stream. */
    areGiven(call: ImageCall): boolean;
    /**
     * A streamed 2xx answer, to its end. @param secret what the request carried
     * @throws UpstreamError `bad_response`, and what the transport throws
     */
    parseStream(
      response: StreamedResponse,
      onPartial: (partial: PartialImage) => void,
      secret?: string,
    ): Promise<UpstreamImages>;
  };
}

/** One attempt to moderate. */
export interface ModerationCall {
  readonly request: ModerationRequest;
  readonly mapping: Mapping;
}

export interface UpstreamModeration {
  readonly model: string | undefined;
  /** One for each input. */
  readonly results: readonly ModerationResult[];
}

/** Translation of an operation whose answer comes whole. */
export interface WholeTranslation<Call, Answer> {
  /** @throws UpstreamError `rejected` for what the provider cannot take */
  buildRequest(call: Call, endpoint: Endpoint): OutboundRequest;
  /** A 2xx answer. @param secret what the request carried @throws UpstreamError `bad_response` */
  parseResponse(response: GatheredResponse, call: Call, secret?: string): Answer;
}

/** A pure translation between OpenAI's form and a provider's. It opens no connection, retries nothing, knows no HTTP server. */
export interface Adapter {
  /**
   * Part of a chat request that the provider cannot take; undefined: it takes all of it. Asked before the policy decides: a
   * provider that cannot take a request is not a candidate for it.
   */
  unsupported(call: Omit<ChatCall, 'maxOutputTokens'>): Unsupported | undefined;
  /** Fields that only tune or label, and that the provider does not honour, or only in part: that much is left out. */
  dropped(call: Omit<ChatCall, 'maxOutputTokens'>): readonly string[];
  /** Web searches that the provider bills for a request and reports nowhere; absent: it reports them. */
  unreportedSearches?(request: ChatRequest): number;
  /** @throws UpstreamError `rejected` for what the provider cannot take (an image by URL, say) */
  buildRequest(call: ChatCall, endpoint: Endpoint): OutboundRequest;
  /** A 2xx answer to a request without `stream`. @param secret what the request carried @throws UpstreamError `bad_response` */
  parseResponse(response: GatheredResponse, secret?: string): UpstreamCompletion;
  /**
   * A streamed 2xx answer. Ends normally only when every choice has finished; then the connection is kept.
   * @param secret what the request carried
   * @throws UpstreamError `bad_response`, and what the transport throws
   */
  parseStream(response: StreamedResponse, secret?: string): AsyncIterable<UpstreamChunk>;
  /** Usage that a parsed answer reports, whatever else is wrong with it; undefined: none. */
  reportedUsage(answer: unknown): Usage | undefined;
  /** Any answer that is no success, of any operation, and a gathered answer to a request with `stream`. */
  parseError(response: GatheredResponse, secret: string | undefined): UpstreamError;
  /** Absent: the provider's wire format has no such operation. */
  readonly images?: ImageTranslation;
  readonly moderations?: WholeTranslation<ModerationCall, UpstreamModeration>;
}

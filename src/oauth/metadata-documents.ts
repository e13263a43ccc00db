import type { Configuration } from 'oidc-provider';
import type { GatheredResponse } from '../net/exchange.ts';
import type { Transport, TransportOptions } from '../net/transport.ts';
import { TransportError, type TransportErrorKind } from '../net/transport-error.ts';
import { LONGEST, registrationOf } from './requests.ts';

const TIMEOUT_MS = 2000;
const MAX_BYTES = 5 * 1024;

/** Anyone can name a document: its host gets little time. The error page of a host may be larger than a document. */
export const DOCUMENT_BOUNDS = {
  connectTimeoutMs: TIMEOUT_MS,
  firstByteTimeoutMs: TIMEOUT_MS,
  idleTimeoutMs: TIMEOUT_MS,
  totalTimeoutMs: TIMEOUT_MS,
  maxResponseBytes: 64 * 1024,
  maxConnections: 4,
} as const satisfies Partial<TransportOptions>;

/** Why the document of a client cannot be used: a sentence for anyone, which tells nothing of our network. */
export class DocumentFault extends Error {}

/** A host that is refused and one that is not there are reported in the same words: else anyone could look around in our network. */
const TRANSPORT_FAULTS: Readonly<Record<TransportErrorKind, string>> = {
  connection: 'Its metadata document cannot be reached at a public address.',
  timeout: 'Its metadata document took too long.',
  too_large: 'Its metadata document is too large.',
  bad_response: 'Its metadata document is not sent as plain HTTP.',
  aborted: 'Its metadata document took too long.',
};

/**
 * Fetches the metadata document of a client that is named by the document's URL, and brings it into the form of a registration: it
 * means as much as one, and clients leave out the same things. @throws DocumentFault
 */
export function createFetchDocument(transport: Pick<Transport, 'send'>): NonNullable<Configuration['fetch']> {
  async function get(url: URL): Promise<GatheredResponse> {
    try {
      const response = await transport.send(
        {
          origin: url.origin,
          path: url.pathname + url.search,
          method: 'GET',
          headers: { accept: 'application/json', 'user-agent': 'Portcullis' },
          stream: false,
          addresses: 'public',
        },
        { signal: new AbortController().signal, share: 'oauth', room: () => {} },
      );
      if (response.kind === 'gathered') return response;
    } catch (error) {
      if (error instanceof TransportError) throw new DocumentFault(TRANSPORT_FAULTS[error.kind], { cause: error });
      throw error;
    }
    throw new Error('a gathered answer was asked for and a stream came');
  }

  return async (input) => {
    const id = String(input);
    if (id.length > LONGEST.uri) throw new DocumentFault(`Its address is longer than ${LONGEST.uri} characters.`);
    const { status, headers, body, text } = await get(new URL(id));
    if (status !== 200) throw new DocumentFault(`Its metadata document is answered with status ${status}.`);
    if (body.length > MAX_BYTES) throw new DocumentFault(`Its metadata document is larger than ${MAX_BYTES} bytes.`);
    const cacheControl = headers['cache-control'];
    return new Response(JSON.stringify(metadataIn(text)), {
      headers: typeof cacheControl === 'string' ? { 'cache-control': cacheControl } : {},
    });
  };
}

/** The metadata that means something here, with what `oidc-provider` checks of a document next to it. @throws DocumentFault */
function metadataIn(text: string): object {
  const document = parsed(text);
  const registration = registrationOf(document);
  if (typeof registration === 'string') throw new DocumentFault(`Its metadata document is refused. ${registration}`);
  const { client_id, client_secret, client_secret_expires_at } = document;
  // The default of a registration is a secret, which such a client cannot have.
  const noSecret = { token_endpoint_auth_method: 'none' };
  return { ...noSecret, ...registration.metadata, client_id, client_secret, client_secret_expires_at };
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    // Below.
  }
  if (typeof document === 'object' && document !== null && !Array.isArray(document)) return { ...document };
  throw new DocumentFault('Its metadata document is not a JSON object.');
}

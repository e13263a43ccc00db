import { type Server, STATUS_CODES } from 'node:http';
import { Socket } from 'node:net';
import { ApiError, invalidRequest } from '../../domain/errors.ts';
import { newId } from '../../domain/id.ts';
import type { Connections } from './connections.ts';
import { endLingering } from './unread-body.ts';

/** What Node's HTTP parser found wrong, by its code, as an answer of ours. */
function faultOf(error: Error): ApiError {
  switch ('code' in error ? error.code : undefined) {
    case 'HPE_HEADER_OVERFLOW':
      return new ApiError(431, 'request_too_large', 'The headers of the request are too large.');
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new ApiError(413, 'request_too_large', 'The chunk extensions of the request are too large.');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ApiError(408, 'request_timeout', 'The request did not arrive in time.');
    default:
      return invalidRequest('The request is not well-formed HTTP.');
  }
}

function answerOf(fault: ApiError): string {
  const body = JSON.stringify(fault.envelope());
  return [
    `HTTP/1.1 ${fault.status} ${STATUS_CODES[fault.status]}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${newId('req')}`,
    'connection: close',
    '',
    body,
  ].join('\r\n');
}

/**
 * Answers what never becomes a request in the envelope too, and ends its connection. A connection that owes another
 * answer ends with that instead: the client would take ours for a part of it.
 */
export function answerMalformedRequests(server: Server, connections: Connections): void {
  server.on('clientError', (error, stream) => {
    if (!(stream instanceof Socket)) return;
    if (connections.endWithAnswers(stream)) return;
    if (!stream.writable) {
      stream.destroy();
      return;
    }
    stream.write(answerOf(faultOf(error)));
    endLingering(stream);
  });
}

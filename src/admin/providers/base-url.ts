import { isIP } from 'node:net';
import { type Endpoint, endpointOfUrl } from '../../domain/address.ts';
import { invalidRequest } from '../../domain/errors.ts';
import { withoutFinalSlashes } from '../../lib/text.ts';
import { isPublicAddress } from '../../net/address-policy.ts';

/** A name that means this machine wherever it is looked up. */
const LOCAL_NAME = /(^|\.)localhost\.?$/;

/**
 * A base URL as it is stored: without a final slash. 400 for anything but an http or https URL without user, query and
 * fragment, and for a literal private address that is not opened. What a name leads to is judged when a connection is made.
 */
export function readBaseUrl(text: string, param: string, opened: readonly Endpoint[]): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  // The text, too: a URL drops an empty query or user, and what stands around it.
  if (url === undefined || !/^https?:\/\/[^\s\\?#]+$/i.test(text) || url.username !== '' || url.password !== '') {
    throw invalidRequest('A base URL must be an http or https URL without user, query and fragment.', param);
  }
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const isPrivate = LOCAL_NAME.test(host) || (isIP(host) !== 0 && !isPublicAddress(host));
  const endpoint = endpointOfUrl(url);
  if (isPrivate && !opened.includes(endpoint)) {
    throw invalidRequest(
      `The address of the base URL is private: it can be used when ALLOW_PRIVATE_UPSTREAMS names ${endpoint}.`,
      param,
    );
  }
  return withoutFinalSlashes(url.href);
}

/** Whether a secret that is sent to the one would go to the same server at the other. */
export const isSameServer = (one: string, other: string): boolean => new URL(one).origin === new URL(other).origin;

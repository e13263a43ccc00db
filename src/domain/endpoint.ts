import { isIPv6 } from 'node:net';

/** A host with a port as `ALLOW_PRIVATE_UPSTREAMS` names it: `host:port`, lower case, an IPv6 address in brackets. */
export type Endpoint = string;

/** @param hostname as a parsed URL has it; the brackets of an IPv6 address may be missing. */
export const endpointOf = (hostname: string, port: number): Endpoint =>
  `${isIPv6(hostname) ? `[${hostname}]` : hostname.toLowerCase()}:${port}`;

/** Where a URL leads; the port of its scheme when it names none. */
export const endpointOfUrl = ({ protocol, hostname, port }: URL): Endpoint =>
  endpointOf(hostname, port === '' ? schemePort(protocol) : Number(port));

export const schemePort = (protocol: string): number => (protocol === 'https:' ? 443 : 80);

/**
 * One entry of the list, spelled as a URL spells it afterwards (`0x7f.1:80` becomes `127.0.0.1:80`), so that it can be compared.
 * @throws Error for anything else than a host and a port
 */
export function parseEndpoint(text: string): Endpoint {
  const [, host = '', port = ''] = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})$/.exec(text) ?? [];
  const number = Number(port);
  if (number < 1 || number > 65_535 || !URL.canParse(`http://${host}`)) {
    throw new Error(`"${text}" is not a host name or an IP address with a port.`);
  }
  return endpointOf(new URL(`http://${host}`).hostname, number);
}

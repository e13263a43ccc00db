import { isIPv6 } from 'node:net';
import type { Config } from '../../config/config.ts';

/** Where a browser reaches the gateway: at `PUBLIC_URL`, or on this machine. Empty: its port is free, and known to the running gateway alone. */
export function gatewayAddress({ publicUrl, gateway: { host, port } }: Pick<Config, 'publicUrl' | 'gateway'>): string {
  if (publicUrl !== undefined) return publicUrl;
  if (port === 0) return '';
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `http://${isIPv6(reachable) ? `[${reachable}]` : reachable}:${port}`;
}

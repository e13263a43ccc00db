import { describe, expect, it } from 'vitest';
import { isPublicAddress } from '../../src/net/address-policy.ts';

describe('isPublicAddress', () => {
  it.each(['1.1.1.1', '8.8.8.8', '172.32.0.1', '100.128.0.1', '192.169.0.1', '2606:4700:4700::1111', '2a00:1450::1'])(
    'takes %s',
    (address) => expect(isPublicAddress(address)).toBe(true),
  );

  it.each([
    ['loopback', '127.0.0.1'],
    ['loopback', '127.255.255.254'],
    ['loopback', '::1'],
    ['unspecified', '0.0.0.0'],
    ['unspecified', '::'],
    ['private', '10.1.2.3'],
    ['private', '172.31.255.255'],
    ['private', '192.168.1.1'],
    ['private', 'fd00::1'],
    ['shared', '100.64.0.1'],
    ['link-local', '169.254.0.1'],
    ['link-local', 'fe80::1'],
    ['metadata', '169.254.169.254'],
    ['metadata', 'fd00:ec2::254'],
    ['metadata', '100.100.100.200'],
    ['metadata', '168.63.129.16'],
    ['benchmark', '198.18.0.1'],
    ['multicast', '224.0.0.1'],
    ['multicast', 'ff02::1'],
    ['broadcast', '255.255.255.255'],
    ['IPv4-mapped', '::ffff:127.0.0.1'],
    ['IPv4-mapped', '::ffff:8.8.8.8'],
    ['NAT64', '64:ff9b::7f00:1'],
    ['6to4', '2002:7f00:1::'],
    ['Teredo', '2001:0:4136:e378::1'],
    ['documentation', '2001:db8::1'],
    ['documentation', '192.0.2.1'],
    ['no address', 'example.com'],
    ['no address', ''],
  ])('refuses the %s address %s', (_kind, address) => expect(isPublicAddress(address)).toBe(false));
});

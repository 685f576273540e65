import { isIPv4 } from 'node:net';

/**
 * Whether the name of a host, without port, can only mean this machine: 127/8, ::1 with or without the brackets of URLs,
 * and localhost. Other names are not resolved: `localhost.evil.example` is anybody's.
 */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase();
  return name === 'localhost' || name === '::1' || name === '[::1]' || (isIPv4(name) && name.startsWith('127.'));
}

import { isIPv4 } from 'node:net';

/** Whether the name of a host, without port, can only mean this machine. Names other than localhost are not resolved. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase();
  return name === 'localhost' || name === '::1' || name === '[::1]' || (isIPv4(name) && name.startsWith('127.'));
}

/**
 * Whether a `Host` header, or the part of an `Origin` after `http://`, names this machine and port. A page from elsewhere
 * whose name has been pointed to 127.0.0.1 (DNS rebinding) still sends its own name here.
 */
export function isOwnAuthority(authority: string | undefined, port: number): boolean {
  const [, host = '', ownPort = '80'] = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(authority ?? '') ?? [];
  return isLoopback(host) && Number(ownPort) === port;
}

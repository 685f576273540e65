import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';

/** Listens on 127.0.0.1, by default on a free port, and returns the URL. */
export async function listen(server: Server, port = 0): Promise<string> {
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

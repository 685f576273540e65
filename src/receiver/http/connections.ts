import type { Socket } from 'node:net';

const CONNECTIONS_MAX = 1_000;

/**
 * Limits the number of connections. At the limit, a new connection closes the longest idle connection of the address
 * with the most connections, so that a client with many connections cannot keep others out. If no connection is idle,
 * the new connection is closed.
 */
export class Connections {
  /** Number of pending requests by connection. The longest idle connection comes first. */
  readonly #pending = new Map<Socket, number>();
  readonly #max: number;

  constructor(max: number = CONNECTIONS_MAX) {
    this.#max = max;
  }

  opened(socket: Socket): void {
    if (this.#pending.size >= this.#max) this.#close(this.#longestIdle() ?? socket);
    if (socket.destroyed) return;
    this.#pending.set(socket, 0);
    socket.once('close', () => this.#pending.delete(socket));
  }

  /** Counts a request that started, or one that ended. */
  count(socket: Socket, change: 1 | -1): void {
    const pending = this.#pending.get(socket);
    if (pending === undefined) return;
    this.#pending.delete(socket);
    this.#pending.set(socket, pending + change);
  }

  #longestIdle(): Socket | undefined {
    const counts = new Map<string | undefined, number>();
    for (const { remoteAddress } of this.#pending.keys()) {
      counts.set(remoteAddress, (counts.get(remoteAddress) ?? 0) + 1);
    }
    let found: Socket | undefined;
    let most = 0;
    for (const [socket, pending] of this.#pending) {
      const count = counts.get(socket.remoteAddress) ?? 0;
      if (pending > 0 || count <= most) continue;
      most = count;
      found = socket;
    }
    return found;
  }

  #close(socket: Socket): void {
    this.#pending.delete(socket);
    socket.destroy();
  }
}

import type { Socket } from 'node:net';

const CONNECTIONS_MAX = 1_000;
/** Maximum number of pending requests of one connection. A client that sends more does not wait for the responses. */
const REQUESTS_MAX = 16;

/**
 * Limits the number of connections. A pending request counts as known when its key is known. At the limit, a new
 * connection closes the oldest connection without a known request, of the address with the most of them. So neither a
 * client without a key nor one with many connections keeps others out. If all connections have known requests, the new
 * connection is closed.
 */
export class Connections {
  /** A connection moves to the end when a known request starts or ends. */
  readonly #requests = new Map<Socket, { readonly pending: number; readonly known: number }>();
  readonly #max: number;

  constructor(max: number = CONNECTIONS_MAX) {
    this.#max = max;
  }

  opened(socket: Socket): void {
    if (this.#requests.size >= this.#max) this.#close(this.#oldest() ?? socket);
    if (socket.destroyed) return;
    this.#requests.set(socket, { pending: 0, known: 0 });
    socket.once('close', () => this.#requests.delete(socket));
  }

  /** Counts a request that started, or one that ended. Closes a connection with too many requests. */
  count(socket: Socket, change: 1 | -1): void {
    const counts = this.#requests.get(socket);
    if (counts === undefined) return;
    const pending = counts.pending + change;
    if (pending > REQUESTS_MAX) this.#close(socket);
    else this.#requests.set(socket, { ...counts, pending });
  }

  /** Counts a request whose key became known, or one that ended. */
  countKnown(socket: Socket, change: 1 | -1): void {
    const counts = this.#requests.get(socket);
    if (counts === undefined) return;
    this.#requests.delete(socket);
    this.#requests.set(socket, { ...counts, known: counts.known + change });
  }

  #oldest(): Socket | undefined {
    const sockets = [...this.#requests].flatMap(([socket, { known }]) => (known === 0 ? [socket] : []));
    const numbers = new Map<string | undefined, number>();
    for (const { remoteAddress } of sockets) numbers.set(remoteAddress, (numbers.get(remoteAddress) ?? 0) + 1);
    const most = Math.max(...numbers.values());
    return sockets.find(({ remoteAddress }) => numbers.get(remoteAddress) === most);
  }

  #close(socket: Socket): void {
    this.#requests.delete(socket);
    socket.destroy();
  }
}

import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** What becomes of one connection. */
export type Step = (connection: Connection) => Promise<unknown> | unknown;

export interface Connection {
  readonly socket: Socket;
  /** The next request as it came, once its body is whole. */
  request(): Promise<string>;
  /** Resolves when so many bytes have come. */
  bytes(count: number): Promise<void>;
}

export interface ScriptServer {
  readonly url: string;
  /** How many connections there were. */
  readonly connections: number;
  /** The requests that a step has read. */
  readonly requests: readonly string[];
  /** Breaks off every connection that there is. */
  dropConnections(): void;
}

const ACCEPTED = 'HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}';

/** Answers every request of a connection with 202. */
export const accepting: Step = async (connection) => {
  for (;;) {
    await connection.request();
    connection.socket.write(ACCEPTED);
  }
};

/** Answers one request with 202, and keeps the connection. */
export const acceptOne: Step = async (connection) => {
  await connection.request();
  connection.socket.write(ACCEPTED);
};

const NO_INFO = 'HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';

/**
 * A service of raw bytes on a free port: the first connection that something is sent on takes the first step, and so on,
 * the last step for ever. One that asks for `/info` gets 404 and counts for nothing.
 */
export async function scriptServer(...steps: readonly Step[]): Promise<ScriptServer> {
  const sockets = new Set<Socket>();
  const requests: string[] = [];
  let connections = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    // A client that breaks off is what many scripts are about.
    socket.on('error', () => {});
    const connection = new Reading(socket, requests);
    void connection.bytes(1).then(() => {
      if (connection.text.startsWith('GET /info')) return socket.end(NO_INFO);
      const step = steps[Math.min(connections, steps.length - 1)] as Step;
      connections++;
      return step(connection);
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get connections() {
      return connections;
    },
    requests,
    dropConnections() {
      for (const socket of sockets) socket.resetAndDestroy();
    },
  };
}

class Reading implements Connection {
  readonly socket: Socket;
  /** What has come and is not read yet. */
  text = '';
  readonly #requests: string[];
  #received = 0;
  #look = (): void => {};

  constructor(socket: Socket, requests: string[]) {
    this.socket = socket;
    this.#requests = requests;
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      this.text += chunk;
      this.#received += chunk.length;
      this.#look();
    });
  }

  bytes(count: number): Promise<void> {
    return this.#until(() => this.#received >= count);
  }

  async request(): Promise<string> {
    await this.#until(() => this.text.length >= this.#length);
    const request = this.text.slice(0, this.#length);
    this.text = this.text.slice(this.#length);
    this.#requests.push(request);
    return request;
  }

  /** Of the request that has begun. */
  get #length(): number {
    const end = this.text.indexOf('\r\n\r\n');
    if (end < 0) return Number.POSITIVE_INFINITY;
    const [, length = '0'] = /\r\ncontent-length: (\d+)/i.exec(this.text.slice(0, end)) ?? [];
    return end + 4 + Number(length);
  }

  #until(holds: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      this.#look = () => {
        if (holds()) resolve();
      };
      this.#look();
    });
  }
}

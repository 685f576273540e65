import { createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { listen } from './listen.ts';

export type Step = (connection: Connection) => Promise<unknown> | unknown;

export interface Connection {
  readonly socket: Socket;
  /** Returns the raw text of the next request, when its body is complete. */
  request(): Promise<string>;
  /** Resolves when `count` bytes have arrived. */
  bytes(count: number): Promise<void>;
}

export interface ScriptServer {
  readonly url: string;
  readonly connections: number;
  readonly requests: readonly string[];
  dropConnections(): void;
}

const ACCEPTED = 'HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}';

export const accepting: Step = async (connection) => {
  for (;;) {
    await connection.request();
    connection.socket.write(ACCEPTED);
  }
};

/** Responds to one request with 202, and keeps the connection open. */
export const acceptOne: Step = async (connection) => {
  await connection.request();
  connection.socket.write(ACCEPTED);
};

const NO_INFO = 'HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';

/**
 * Starts a service on a free port that writes raw bytes. The first connection with data is handled by the first step,
 * and so on. Further connections are handled by the last step. A request for `/info` gets 404 and is not counted.
 */
export async function scriptServer(...steps: readonly Step[]): Promise<ScriptServer> {
  const sockets = new Set<Socket>();
  const requests: string[] = [];
  let connections = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    // Many scripts test clients that reset the connection.
    socket.on('error', () => {});
    const connection = new Reading(socket, requests);
    void connection.bytes(1).then(() => {
      if (connection.text.startsWith('GET /info')) return socket.end(NO_INFO);
      const step = steps[Math.min(connections, steps.length - 1)] as Step;
      connections++;
      return step(connection);
    });
  });
  const url = await listen(server);
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    url,
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
  /** The received text that no step has read. */
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

  /** The length of the first request in `text`, or infinity if its headers are incomplete. */
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

import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

/** What becomes of one connection. Its bytes are read only as far as the step asks for them. */
export type Step = (connection: Connection) => Promise<unknown> | unknown;

export interface Connection {
  readonly socket: Socket;
  /** The next request as it came, once its body is whole. */
  request(): Promise<string>;
  /** Resolves when so many bytes have come, of any request. */
  bytes(count: number): Promise<void>;
}

export interface ScriptServer {
  readonly url: string;
  /** How many connections there were. */
  readonly connections: number;
  /** The requests that a step has read. */
  readonly requests: readonly string[];
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

/** A service of raw bytes on a free port: the first connection takes the first step, and so on, the last step for ever. */
export async function scriptServer(...steps: readonly Step[]): Promise<ScriptServer> {
  const sockets = new Set<Socket>();
  const requests: string[] = [];
  let connections = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    // A client that breaks off is what many scripts are about.
    socket.on('error', () => {});
    const step = steps[Math.min(connections, steps.length - 1)] as Step;
    connections++;
    void step(connectionOf(socket, requests));
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
  };
}

function connectionOf(socket: Socket, requests: string[]): Connection {
  let text = '';
  let received = 0;
  let look = (): void => {};
  const until = async (holds: () => boolean): Promise<void> => {
    if (socket.listenerCount('data') === 0) {
      socket.setEncoding('latin1').on('data', (chunk: string) => {
        text += chunk;
        received += chunk.length;
        look();
      });
    }
    await new Promise<void>((resolve) => {
      look = () => {
        if (holds()) resolve();
      };
      look();
    });
  };
  return {
    socket,
    bytes: (count) => until(() => received >= count),
    async request() {
      const lengthOf = (): number => {
        const end = text.indexOf('\r\n\r\n');
        if (end < 0) return Number.POSITIVE_INFINITY;
        const [, length = '0'] = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, end)) ?? [];
        return end + 4 + Number(length);
      };
      await until(() => text.length >= lengthOf());
      const length = lengthOf();
      const request = text.slice(0, length);
      text = text.slice(length);
      requests.push(request);
      return request;
    },
  };
}

import { describe, expect, onTestFinished, test } from 'vitest';
import { HttpClient, type HttpRequest } from '../../src/http/client.ts';
import { accepting, acceptOne, type Connection, scriptServer } from '../support/script-server.ts';
import { turns } from '../support/virtual-time.ts';

const POST: HttpRequest = { method: 'POST', path: '/runs', body: ['{"a":', '1}'] };

function clientTo(url: string): HttpClient {
  const client = new HttpClient({
    endpoint: new URL(url),
    headers: {},
    connectTimeoutMs: 5_000,
    requestTimeoutMs: 10_000,
  });
  onTestFinished(() => client.destroy());
  return client;
}

/** Answers the first request, and breaks the connection off when the second has come. */
const breaksAtSecond =
  (leave: (connection: Connection) => void) =>
  async (connection: Connection): Promise<void> => {
    await acceptOne(connection);
    await connection.request();
    leave(connection);
  };

describe('a connection that was kept', () => {
  test.each<[string, (connection: Connection) => void]>([
    ['resets', ({ socket }) => socket.resetAndDestroy()],
    ['ends', ({ socket }) => socket.end()],
  ])('and %s when the next request comes costs one more connection, and no failure', async (_, leave) => {
    const server = await scriptServer(breaksAtSecond(leave), accepting);
    const client = clientTo(server.url);
    expect((await client.send(POST)).status).toBe(202);
    await turns();
    expect((await client.send(POST)).status).toBe(202);
    expect([server.connections, server.requests.length]).toEqual([2, 3]);
    expect(server.requests[2]).toBe(server.requests[1]);
  });

  test('and breaks off twice is a failure the second time', async () => {
    const leave = breaksAtSecond(({ socket }) => void socket.resetAndDestroy());
    const server = await scriptServer(leave, async (connection) => {
      await connection.request();
      connection.socket.resetAndDestroy();
    });
    const client = clientTo(server.url);
    await client.send(POST);
    await turns();
    await expect(client.send(POST)).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(server.connections).toBe(2);
  });

  test('through a time in which the process was frozen and the service left costs no run', async () => {
    let left = (): void => {};
    const server = await scriptServer(async (connection) => {
      await acceptOne(connection);
      left = () => connection.socket.resetAndDestroy();
    }, accepting);
    const client = clientTo(server.url);
    await client.send(POST);
    await turns();
    left();
    // In the same turn: nothing of it has been heard yet, as after a thaw.
    expect((await client.send(POST)).status).toBe(202);
    expect(server.connections).toBe(2);
  });
});

describe('a new connection', () => {
  test('that is reset is a failure at once', async () => {
    const server = await scriptServer(async (connection) => {
      await connection.request();
      connection.socket.resetAndDestroy();
    });
    await expect(clientTo(server.url).send(POST)).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(server.connections).toBe(1);
  });

  test('on which nobody reads is given up at the deadline, and not used again', async () => {
    const server = await scriptServer(({ socket }) => void socket.pause(), accepting);
    const client = clientTo(server.url);
    const large: HttpRequest = { ...POST, body: [Buffer.alloc(8_000_000)], timeoutMs: 60 };
    await expect(client.send(large)).rejects.toThrow('no answer within 60 ms');
    await expect(client.send(POST)).resolves.toMatchObject({ status: 202 });
    expect(server.connections).toBeGreaterThan(1);
    expect(server.requests).toHaveLength(1);
  });
});

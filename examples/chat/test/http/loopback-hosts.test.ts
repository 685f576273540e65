import { request } from 'node:http';
import { expect, test } from 'vitest';
import { isLoopback } from '../../server/http/loopback-hosts.ts';
import { ChatServer } from '../support/chat-server.ts';

/** The status of a request that comes under a name. */
function statusUnder(url: string, host: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request(`${url}/api/threads`, { headers: { host } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    })
      .on('error', reject)
      .end();
  });
}

test('a chat on the machine itself takes requests that come under its names alone', async () => {
  await using chat = await ChatServer.start({ host: '127.0.0.1' });
  const { port } = new URL(chat.url);
  for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`]) {
    expect([host, await statusUnder(chat.url, host)]).toEqual([host, 200]);
  }
  for (const host of [`evil.example:${port}`, 'localhost.evil.example', '127.0.0.1.evil.example']) {
    expect([host, await statusUnder(chat.url, host)]).toEqual([host, 403]);
  }
});

test('a chat that is reached from elsewhere takes any', async () => {
  await using chat = await ChatServer.start({ host: '0.0.0.0' });
  expect(await statusUnder(chat.url, 'chat.example')).toBe(200);
});

test('loopback addresses are those of 127/8, ::1 and localhost', () => {
  expect(['localhost', '127.0.0.1', '127.9.9.9', '::1', '[::1]'].map(isLoopback)).toEqual(Array(5).fill(true));
  expect(['0.0.0.0', '128.0.0.1', '127.0.0.1.x', 'local', '::'].map(isLoopback)).toEqual(Array(5).fill(false));
});

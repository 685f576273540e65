import { request } from 'node:http';
import { expect, test } from 'vitest';
import { isLoopback, nameOf } from '../../server/http/allowed-hosts.ts';
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

test('a chat of which nothing is said takes requests that come under names of its own machine alone', async () => {
  await using chat = await ChatServer.start();
  const { port } = new URL(chat.url);
  for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`]) {
    expect([host, await statusUnder(chat.url, host)]).toEqual([host, 200]);
  }
  for (const host of [`evil.example:${port}`, 'localhost.evil.example', '127.0.0.1.evil.example']) {
    expect([host, await statusUnder(chat.url, host)]).toEqual([host, 403]);
  }
});

test('names that are allowed are taken beside them, in any case and at any port, and no other', async () => {
  await using chat = await ChatServer.start({ allowedHosts: ['Chat.example', '[fd00::1]'] });
  const { port } = new URL(chat.url);
  for (const host of ['chat.example', `CHAT.example:${port}`, '[fd00::1]:8080', 'localhost']) {
    expect([host, await statusUnder(chat.url, host)]).toEqual([host, 200]);
  }
  for (const host of ['evil.example', 'chat.example.evil.example', 'a.chat.example', 'example']) {
    expect([host, await statusUnder(chat.url, host)]).toEqual([host, 403]);
  }
});

test.each(['https://chat.example', 'chat.example:443', 'chat.example/', '*.example', '.example', ''])(
  'what can be no name of a request is not allowed in vain: %j',
  async (name) => {
    const started = ChatServer.start({ allowedHosts: ['chat.example', name] });
    await expect(started).rejects.toThrow(`allowedHosts has ${JSON.stringify(name)}: a name is written without scheme`);
  },
);

test('loopback addresses are those of 127/8, ::1 and localhost', () => {
  expect(['localhost', '127.0.0.1', '127.9.9.9', '::1', '[::1]'].map(isLoopback)).toEqual(Array(5).fill(true));
  expect(['0.0.0.0', '128.0.0.1', '127.0.0.1.x', 'local', '::'].map(isLoopback)).toEqual(Array(5).fill(false));
});

test.each([
  ['0.0.0.0', []],
  ['::', []],
  ['192.168.1.5', ['192.168.1.5']],
  ['fd00:0::1', ['[fd00::1]']],
  ['fe80::1%eth0', []],
  ['Chat.example', ['chat.example']],
])('requests may use the address that the chat listens on as the host name: %s', (address, names) => {
  expect(nameOf(address)).toEqual(names);
});

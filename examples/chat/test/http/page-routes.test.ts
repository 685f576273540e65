import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ChatServer } from '../support/chat-server.ts';
import { temporaryFolder } from '../support/folder.ts';

test('a browser that has lost its way is led to the page, a program is told in JSON', async () => {
  using folder = temporaryFolder();
  writeFileSync(join(folder.path, 'index.html'), 'The page');
  await using chat = await ChatServer.start({ page: folder.path });
  const html = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
  const get = async (path: string, headers: Record<string, string>): Promise<[number, string | null, string]> => {
    const answer = await fetch(chat.url + path, { headers });
    return [answer.status, answer.headers.get('content-type'), await answer.text()];
  };
  expect(await get('/', html)).toEqual([200, 'text/html; charset=utf-8', 'The page']);
  expect(await get('/nope', html)).toEqual([
    404,
    'text/html; charset=UTF-8',
    expect.stringContaining('<a href="/">Go to the chat</a>'),
  ]);
  for (const [path, headers] of [
    ['/nope', { accept: '*/*' }],
    ['/api/nope', html],
  ] as const) {
    expect(await get(path, headers)).toEqual([
      404,
      'application/json',
      expect.stringContaining(`There is nothing at GET ${path}.`),
    ]);
  }
});

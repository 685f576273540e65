import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SqliteDatabase } from '../server/storage/sqlite-database.ts';
import { AT_ONCE, greetingOf, startChat } from './support/chat-program.mjs';
import { temporaryFolder } from './support/folder.ts';

const start = (...argv: string[]): ChildProcess => startChat(argv, 'pipe');

/** What a program prints until it ends, and how it ends. */
async function outcomeOf(program: ChildProcess): Promise<{ code: number | null; out: string; err: string }> {
  let [out, err] = ['', ''];
  program.stdout?.on('data', (chunk) => {
    out += chunk;
  });
  program.stderr?.on('data', (chunk) => {
    err += chunk;
  });
  const [code] = (await once(program, 'close')) as [number | null];
  return { code, out, err };
}

test('it prints where the chat and the traces are, answers, and ends when it is told to', async () => {
  const program = start(...AT_ONCE);
  const outcome = outcomeOf(program);
  const { lines, url: chat, traces } = await greetingOf(program);
  for (const address of [chat, traces]) expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  expect(lines[2]).toBe('No model is configured: answers are made by rules. Set OPENAI_API_KEY, or OPENAI_BASE_URL.');
  const info = (await (await fetch(`${chat}/api/info`)).json()) as { tracing: { viewer_url: string } };
  expect(info.tracing.viewer_url).toBe(traces);

  // The documents are those of runspan.
  const command = {
    id: 1,
    method: 'run.start',
    params: { input: { messages: [{ role: 'user', content: 'What is in the spool?' }] } },
  };
  const headers = { 'content-type': 'application/json' };
  await fetch(`${chat}/api/threads/t/commands`, { method: 'POST', headers, body: JSON.stringify(command) });
  const stream = await fetch(`${chat}/api/threads/t/stream`, { method: 'POST', headers, body: '{}' });
  let text = '';
  for await (const part of (stream.body as ReadableStream<Uint8Array<ArrayBuffer>>).pipeThrough(
    new TextDecoderStream(),
  )) {
    text += part;
    if (text.includes('"event":"completed","graph_name":"supervisor"')) break;
  }
  expect(text).toContain('spool.md');

  // What was done at the start is no trace.
  const traced = async (): Promise<string[]> => {
    const { items } = (await (await fetch(`${traces}/query/traces`)).json()) as { items: { name: string }[] };
    return items.map(({ name }) => name);
  };
  await expect.poll(traced).toContain('chat turn');
  expect(await traced()).toEqual(['chat turn']);
  program.kill('SIGTERM');
  expect(await outcome).toMatchObject({ code: 0, err: '' });
});

test('on a reachable address, it accepts the allowed host names and warns that there is no sign-in', async () => {
  const program = start('--host', '0.0.0.0', '--allow-host', 'chat.example', ...AT_ONCE);
  const outcome = outcomeOf(program);
  const { url, lines } = await greetingOf(program);
  expect(lines[2]).toBe('There is no sign-in: put one before this address.');
  const { port } = new URL(url);
  const statusUnder = async (host: string): Promise<number | undefined> => {
    const asked = request({ port, path: '/api/threads', headers: { host } }).end();
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    return answer.resume().statusCode;
  };
  expect(await statusUnder('chat.example')).toBe(200);
  expect(await statusUnder(`127.0.0.1:${port}`)).toBe(200);
  expect(await statusUnder('rebound.example')).toBe(403);
  program.kill('SIGTERM');
  expect(await outcome).toMatchObject({ code: 0, err: '' });
});

test('help is printed', async () => {
  expect(await outcomeOf(start('--help'))).toMatchObject({
    code: 0,
    err: '',
    out: expect.stringContaining('--data DIR'),
  });
});

test('what cannot be used ends it with a line that says what to do', async () => {
  using folder = temporaryFolder();
  using used = temporaryFolder();
  const file = join(folder.path, 'file');
  writeFileSync(file, '');
  const database = SqliteDatabase.open(used.path);
  const free = ['--port', '0', '--trace-port', '0'];
  const cases: [string[], number, RegExp][] = [
    [['--port', 'x'], 2, /^chat: --port has to be a whole number .*$/],
    [
      ['--data', '/proc/chat/data'],
      1,
      /^chat: The folder \/proc\/chat\/data cannot be made: .*; name another one with --data\.$/,
    ],
    [['--data', file], 1, /^chat: .*file is a file, and has to be a folder; name one with --data\.$/],
    [
      ['--data', used.path],
      1,
      /^chat: .* another chat uses this folder\. End that one, name another folder with --data, .*$/,
    ],
    [['--data', folder.path, '--postgres', 'postgres://h/d'], 1, /^chat: A folder \(--data\) .* choose one of them\.$/],
    [['--docs', join(folder.path, 'none')], 2, /^chat: --docs has to be a folder; there is none at .*none$/],
    [['--docs', folder.path], 2, /^chat: --docs has to be a folder with Markdown files; .*$/],
    [['--host', '192.0.2.1'], 1, /^chat: 192\.0\.2\.1 is no address of this machine; .* --host$/],
  ];
  const outcomes = await Promise.all(cases.map(([argv]) => outcomeOf(start(...free, ...argv))));
  for (const [index, { code, out, err }] of outcomes.entries()) {
    const [argv, wanted, line] = cases[index] as (typeof cases)[number];
    expect([argv, code, out, err.endsWith('\n')]).toEqual([argv, wanted, '', true]);
    expect(err.trimEnd()).toMatch(line);
  }
  database.close();
});

test('a port that is taken is named', async () => {
  const other = createServer();
  other.listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  expect(await outcomeOf(start('--port', String(port), '--trace-port', '0'))).toMatchObject({
    code: 1,
    err: `chat: port ${port} is taken; choose another one with --port\n`,
  });
  expect(await outcomeOf(start('--port', '0', '--trace-port', String(port)))).toMatchObject({
    code: 1,
    err: `chat: port ${port} is taken; choose another one for the traces with --trace-port\n`,
  });
  other.close();
});

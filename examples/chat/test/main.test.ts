import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readSettings, SettingsError } from '../server/settings.ts';
import { SqliteDatabase } from '../server/storage/sqlite.ts';
import { AT_ONCE, greetingOf, startChat } from './support/chat-program.mjs';
import { ChatClient, streamedText } from './support/chat-server.ts';
import { temporaryFolder } from './support/folder.ts';

const start = (...argv: string[]): ChildProcess => startChat(argv, 'pipe');

/** Waits for a program to end. Returns its output and exit code. */
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

test('the program prints its addresses, answers from the documentation, and traces each turn', async () => {
  const program = start(...AT_ONCE);
  const outcome = outcomeOf(program);
  const { lines, url, traces } = await greetingOf(program);
  for (const address of [url, traces]) expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  expect(lines[2]).toContain('No model configured; answers come from built-in rules.');
  const client = new ChatClient(`${url}/api`);
  expect(await client.get('/info')).toMatchObject({
    agent: 'supervisor',
    tracing: { is_on: true, viewer_url: traces },
  });
  expect(streamedText(await client.ask('t', 'What is in the spool?'))).toContain('spool.md');
  const traced = async (): Promise<string[]> => {
    const { items } = (await (await fetch(`${traces}/query/traces`)).json()) as { items: { name: string }[] };
    return items.map(({ name }) => name);
  };
  await expect.poll(traced).toEqual(['chat turn']);
  expect((await fetch(url, { headers: { accept: 'text/html' } })).headers.get('content-security-policy')).toContain(
    "default-src 'self'",
  );
  expect((await fetch(`${url}/none`, { headers: { accept: 'text/html' } })).status).toBe(404);
  program.kill('SIGTERM');
  expect(await outcome).toMatchObject({ code: 0, err: '' });
});

test('on a reachable address, the program accepts the allowed host names and warns that there is no sign-in', async () => {
  const program = start('--host', '0.0.0.0', '--allow-host', 'chat.example', ...AT_ONCE);
  const outcome = outcomeOf(program);
  const { url, lines } = await greetingOf(program);
  expect(lines[2]).toBe('There is no sign-in. Put one in front of this address.');
  const { port } = new URL(url);
  const statusFor = async (host: string): Promise<number | undefined> => {
    const [response] = (await once(request({ port, path: '/api/threads', headers: { host } }).end(), 'response')) as [
      IncomingMessage,
    ];
    return response.resume().statusCode;
  };
  expect(await statusFor('chat.example')).toBe(200);
  expect(await statusFor(`127.0.0.1:${port}`)).toBe(200);
  expect(await statusFor('rebound.example')).toBe(403);
  program.kill('SIGTERM');
  expect(await outcome).toMatchObject({ code: 0, err: '' });
});

test('a setting that cannot be used ends the program with a line that says what to do', async () => {
  using folder = temporaryFolder();
  using used = temporaryFolder();
  const file = join(folder.path, 'file');
  writeFileSync(file, '');
  const database = SqliteDatabase.open(used.path);
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const cases: [string[], number, RegExp][] = [
    [['--port', 'x'], 2, /^chat: Expected --port to be a whole number .*$/],
    [['--nothing'], 2, /^chat: Unknown option '--nothing'. See --help for the options\.$/],
    [['--data', file], 1, /^chat: SQLite at .*chat\.db cannot be used: .*$/],
    [['--data', used.path], 1, /^chat: .* is open in another process\. Stop that chat, .*$/],
    [['--data', folder.path, '--postgres', 'postgres://h/d'], 1, /^chat: Choose either a folder .*$/],
    [
      ['--postgres', 'postgres://u:secret-word@127.0.0.1:1/d'],
      1,
      /^chat: PostgreSQL at 127\.0\.0\.1:1\/d cannot be used: .*ECONNREFUSED.*$/,
    ],
    [['--docs', folder.path], 2, /^chat: Expected --docs to be a folder with Markdown files.*$/],
    [['--host', '192.0.2.1'], 1, /^chat: 192\.0\.2\.1 is not an address of this machine.*--host\.$/],
    [['--port', String(port)], 1, /^chat: Port \d+ is in use\. Choose another port with --port\.$/],
    [['--trace-port', String(port)], 1, /^chat: Port \d+ is in use\. .* --trace-port\.$/],
  ];
  for (const [argv, code, line] of cases) {
    const outcome = await outcomeOf(start('--port', '0', '--trace-port', '0', ...argv));
    expect([argv, outcome.code, outcome.out]).toEqual([argv, code, '']);
    expect(outcome.err.trimEnd()).toMatch(line);
  }
  other.close();
  await database.close();
}, 180_000);

test('settings come from the command line, then from the environment', () => {
  const env = { CHAT_POSTGRES_URL: 'postgres://h/d', CHAT_ALLOWED_HOSTS: 'a.example, b.example' };
  expect(readSettings([], env)).toMatchObject({
    port: 4888,
    postgres: 'postgres://h/d',
    allowedHosts: ['a.example', 'b.example'],
  });
  expect(readSettings(['--port', '0', '--allow-host', 'c'], env)).toMatchObject({ port: 0, allowedHosts: ['c'] });
  expect(readSettings(['--help'], {})).toBeUndefined();
  expect(() => readSettings(['--data', ''], {})).toThrow(SettingsError);
});

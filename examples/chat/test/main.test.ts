import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Hono } from 'hono';
import { expect, test } from 'vitest';
import { loadDocuments } from '../server/agent/documents.ts';
import { listen } from '../server/http/host.ts';
import { readSettings, SettingsError } from '../server/settings.ts';
import { SqliteDatabase } from '../server/storage/sqlite.ts';
import { openStorage } from '../server/storage/storage.ts';
import { openTraces } from '../server/traces.ts';
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
  expect(lines[2]).toContain('No model is configured; answers come from built-in rules.');
  const client = new ChatClient(`${url}/api`);
  expect(await client.get('/info')).toMatchObject({
    agent: 'supervisor',
    tracing: { is_on: true, viewer_url: traces },
  });
  expect(streamedText(await client.ask('t', 'What is in the spool?'))).toContain('delivery.md');
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
  expect(lines[2]).toBe('The chat has no sign-in. Put a proxy with sign-in in front of this address.');
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

test('a setting that cannot be used is explained, and ends the program', async () => {
  using folder = temporaryFolder();
  using used = temporaryFolder();
  const file = join(folder.path, 'file');
  writeFileSync(file, '');
  const database = SqliteDatabase.open(used.path);
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const postgres = 'postgres://u:secret-word@127.0.0.1:1/d';
  const uses: [() => unknown, RegExp][] = [
    [() => readSettings(['--port', 'x'], {}), /^Expected --port to be a whole number .*$/],
    [() => openStorage({ data: file }), /^SQLite at .*chat\.db cannot be used: .*$/],
    [() => openStorage({ data: used.path }), /^.* is open in another process\. Stop that chat, .*$/],
    [() => openStorage({ data: folder.path, postgres }), /^Choose either a folder .*$/],
    [() => openStorage({ postgres }), /^PostgreSQL at 127\.0\.0\.1:1\/d cannot be used: .*ECONNREFUSED.*$/],
    [() => loadDocuments(folder.path), /^Expected --docs to be a folder with Markdown files.*$/],
    [() => listen(new Hono(), '192.0.2.1', 0, () => {}), /^192\.0\.2\.1 is not an address of this machine.*--host\.$/],
    [() => openTraces({ tracePort: port, env: {} }), /^Port \d+ is in use\. .* --trace-port\.$/],
  ];
  for (const [use, message] of uses) await expect((async () => use())()).rejects.toThrow(message);

  // The program is started only to see its exit codes and its line.
  const [unknown, inUse] = await Promise.all([
    outcomeOf(start('--nothing')),
    outcomeOf(start(...AT_ONCE, '--port', String(port))),
  ]);
  expect(unknown).toEqual({ code: 2, out: '', err: "chat: Unknown option '--nothing'. See --help for the options.\n" });
  expect(inUse).toEqual({
    code: 1,
    out: '',
    err: `chat: Port ${port} is in use. Choose another port with --port.\n`,
  });
  other.close();
  await database.close();
});

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

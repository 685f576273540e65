import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { AT_ONCE, greetingOf, startChat } from './support/chat-program.mjs';

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

test('help is printed, and what cannot be used ends it with 2', async () => {
  const [help, wrong] = await Promise.all([outcomeOf(start('--help')), outcomeOf(start('--port', 'x'))]);
  expect(help).toMatchObject({ code: 0, err: '', out: expect.stringContaining('--data DIR') });
  expect(wrong).toMatchObject({
    code: 2,
    out: '',
    err: expect.stringMatching(/^chat: --port has to be .*\n\nusage: /),
  });
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
    err: expect.stringMatching(new RegExp(`^chat: .*${port}`)),
  });
  other.close();
});

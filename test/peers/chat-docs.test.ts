import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { transformWithEsbuild } from 'vite';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { AT_ONCE, greetingOf, startChat } from '../../examples/chat/test/support/chat-program.mjs';
import { read } from '../package/repository.ts';
import { masked, snippetsOf } from '../package/snippets.ts';
import { root, temporaryFolder } from '../support/folders.ts';
import { runNode } from '../support/program.ts';

const build = join(root, 'examples/chat/build');
const snippets = snippetsOf('docs/chat.md', read('docs/chat.md'));
const ofPeers = snippets.filter(({ isOfPeers }) => isOfPeers);
const programs = ofPeers.filter(({ file, language }) => file === undefined && language === 'js');
/** Modules of the application, with the file that they belong to. */
const modules = ofPeers.filter(({ file }) => file !== undefined);

let chat: ChildProcess;
let url = '';
let lines: string[];

beforeAll(async () => {
  chat = startChat(AT_ONCE);
  ({ lines, url } = await greetingOf(chat));
});

afterAll(() => chat.kill());

describe('the pages on the chat', () => {
  test('show what the program prints', () => {
    const start = ofPeers.find(({ language }) => language === 'sh');
    expect(masked(lines.join('\n'))).toEqual(masked(start?.prints ?? ''));
  });

  test.each(programs.map((program) => [program.place, program] as const))(
    '%s prints the output that the page shows',
    async (place, program) => {
      // The packages of the application are found from this folder.
      const file = join(build, `snippet-${place.replace(/\W/g, '-')}.mjs`);
      writeFileSync(file, program.code.replaceAll('http://127.0.0.1:4888', url));
      try {
        const { stdout, stderr } = await runNode([file]);
        expect(stderr).toBe('');
        expect(masked(stdout)).toEqual(masked(program.prints ?? ''));
      } finally {
        rmSync(file);
      }
    },
  );

  test('show a component of React that sends a message and shows the answer', async () => {
    const jsx = ofPeers.find(({ language }) => language === 'jsx')?.code ?? '';
    const folder = temporaryFolder(join(root, 'test/peers/react'));
    onTestFinished(folder.remove);
    const file = join(folder.path, 'chat.mjs');
    const { code } = await transformWithEsbuild(jsx.replace('http://127.0.0.1:4888', url), 'chat.jsx', {
      jsx: 'automatic',
    });
    writeFileSync(file, code);
    const { stdout, stderr } = await runNode([join(root, 'test/peers/react/chat-form.mjs'), file]);
    expect([stdout, stderr]).toEqual([programs[0]?.prints, '']);
  });

  test('show a host that serves another agent, its page and its traces, until it receives SIGTERM', async () => {
    expect(modules.map(({ file }) => file)).toEqual(['server/host.ts']);
    const file = join(build, 'server/host-of-docs.js');
    writeFileSync(
      file,
      compiled(modules[0]?.code ?? '')
        .replace(/\b4888\b/, '0')
        .replace(/\b4777\b/, '0'),
    );
    const host = startChat([], 'pipe', file);
    let said = '';
    host.stderr?.on('data', (chunk) => {
      said += chunk;
    });
    const ended = once(host, 'close');
    try {
      const [address] = (await Promise.race([
        once(createInterface({ input: host.stdout as Readable }), 'line'),
        ended.then(() => Promise.reject(new Error(said))),
      ])) as [string];
      const thread = `${address}/api/threads/t1`;
      const input = { messages: [{ role: 'user', content: 'Hello' }] };
      const body = JSON.stringify({ id: 1, method: 'run.start', params: { input } });
      await fetch(`${thread}/commands`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
      const answered = [{ content: 'Hello' }, { content: [{ type: 'text', text: 'Hello' }] }];
      const messages = async (): Promise<unknown> =>
        ((await (await fetch(`${thread}/state`)).json()) as { values?: { messages?: unknown } }).values?.messages;
      await expect.poll(messages).toMatchObject(answered);
      expect(await (await fetch(address)).text()).toContain('<html');
      const { agent, tracing } = (await (await fetch(`${address}/api/info`)).json()) as Info;
      expect(agent).toBe('mailer');
      await expect.poll(() => tracesAt(tracing.viewer_url)).toEqual(['chat turn']);
    } finally {
      host.kill('SIGTERM');
      await ended;
      rmSync(file);
    }
    expect([await ended, said]).toEqual([[0, null], '']);
  });
});

interface Info {
  readonly agent: string;
  readonly tracing: { readonly viewer_url: string };
}

function compiled(code: string): string {
  return code.replaceAll(/'(\.[^']*)\.ts'/g, "'$1.js'");
}

async function tracesAt(url: string): Promise<string[]> {
  const { items } = (await (await fetch(`${url}/query/traces`)).json()) as { items: { name: string }[] };
  return items.map(({ name }) => name);
}

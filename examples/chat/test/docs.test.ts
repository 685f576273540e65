import { type ChildProcess, execFile } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { masked, snippetsOf } from '../../../test/package/snippets.ts';
import { AT_ONCE, greetingOf, startChat } from './support/chat-program.mjs';

const build = new URL('../build/', import.meta.url);
const snippets = ['docs/chat.md', 'docs/chat-protocol.md'].flatMap((page) =>
  snippetsOf(page, readFileSync(new URL(`../../../${page}`, import.meta.url), 'utf8')),
);
const programs = snippets.filter(({ isOfPeers }) => isOfPeers);

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
    const shown = snippets.find(({ language }) => language === 'console');
    expect(masked(lines.join('\n'))).toEqual(masked(shown?.code ?? ''));
  });

  test.each(programs.map((program) => [program.place, program] as const))(
    '%s prints what it says',
    async (place, program) => {
      // Where the packages of the application are found.
      const file = fileURLToPath(new URL(`snippet-${place.replace(/\W/g, '-')}.mjs`, build));
      writeFileSync(file, program.code.replaceAll('http://127.0.0.1:4888', url));
      try {
        const { stdout, stderr } = await promisify(execFile)(process.execPath, [file], { timeout: 30_000 });
        expect(stderr).toBe('');
        expect(masked(stdout)).toEqual(masked(program.prints ?? ''));
      } finally {
        rmSync(file);
      }
    },
  );
});

import { type ChildProcess, execFile } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { masked, snippetsOf } from '../../../test/package/snippets.ts';
import { AT_ONCE, greetingOf, startChat } from './support/chat-program.mjs';

const build = new URL('../build/', import.meta.url);
const page = readFileSync(new URL('../../../docs/chat.md', import.meta.url), 'utf8');
const programs = snippetsOf('docs/chat.md', page).filter(({ isOfPeers }) => isOfPeers);

let chat: ChildProcess;
let url = '';
let lines: string[];

beforeAll(async () => {
  chat = startChat(AT_ONCE);
  ({ lines, url } = await greetingOf(chat));
});

afterAll(() => chat.kill());

describe('the page on the chat', () => {
  test('shows what the program prints', () => {
    const shown = snippetsOf('docs/chat.md', page).find(({ language }) => language === 'console');
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

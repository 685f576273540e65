import { describe, expect, it } from 'vitest';
import { abridged, commandsOf, masked, snippetsOf } from './snippets.ts';

const page = (...lines: string[]): string => lines.join('\n');

describe('the snippets of a page', () => {
  it('have a place, a language, a file name, code and output', () => {
    const markdown = page('# A page', '```js hello.js', 'a();', '```', '', 'It prints:', '', '```text', 'b', '```');
    expect(snippetsOf('a.md', markdown)).toEqual([
      {
        place: 'a.md:2',
        language: 'js',
        file: 'hello.js',
        code: 'a();\n',
        notRun: undefined,
        testedBy: undefined,
        isOfPeers: false,
        folder: undefined,
        prints: 'b\n',
        fails: false,
      },
    ]);
  });

  it('are separate if the page does not describe one as the output of the other', () => {
    const markdown = page('```sh', 'a', '```', 'The file is:', '```text', 'b', '```');
    expect(snippetsOf('a.md', markdown)).toMatchObject([{ prints: undefined }, { language: 'text' }]);
  });

  it('are not run if the comment above has a reason', () => {
    const markdown = page('<!-- not run: needs a key -->', '```ts', 'a();', '```', '```ts', 'b();', '```');
    expect(snippetsOf('a.md', markdown).map(({ notRun }) => notRun)).toEqual(['needs a key', undefined]);
  });

  it('are run by the tests against peers if the comment above requests it', () => {
    const markdown = page('<!-- run by npm run test:peers -->', '```js', 'a();', '```', '```js', 'b();', '```');
    expect(snippetsOf('a.md', markdown).map(({ isOfPeers }) => isOfPeers)).toEqual([true, false]);
    const inFolder = page('<!-- run in examples/a by npm run test:peers -->', '```sh', 'a', '```');
    expect(snippetsOf('a.md', inFolder)).toMatchObject([{ isOfPeers: true, folder: 'examples/a' }]);
  });

  it('fail if the page says so', () => {
    const markdown = page('```sh', 'a', '```', 'It fails and prints:', '```console', 'b', '```');
    expect(snippetsOf('a.md', markdown)).toMatchObject([{ prints: 'b\n', fails: true }]);
  });

  it('must have an end, and an output must have a snippet', () => {
    expect(() => snippetsOf('a.md', page('```js', 'a();'))).toThrow('a.md:1: the block has no end');
    expect(() => snippetsOf('a.md', page('prints', '```text', 'a', '```'))).toThrow('a.md:2');
  });
});

describe('output', () => {
  it('is compared without ids, times, durations, addresses and columns', () => {
    const first = page(
      'chain  12 ms  2026-11-20T07:22:40.123456Z',
      '',
      '  019a9f8e-0d3c-7000-8000-000000000001 http://127.0.0.1:4777',
    );
    const second = page(
      'chain 1.5 s 2027-01-01T00:00:00Z',
      '019a9f8e0d3c70008000000000000002   http://localhost:50123',
    );
    expect(masked(first)).toEqual(['chain <duration> <time>', '<id> <url>']);
    expect(masked(second)).toEqual(masked(first));
  });

  it('may be cut by the page, but not where it differs', () => {
    const output = page('a', 'b', '', 'c 1 ms', 'd', 'e');
    for (const shown of [
      ['…', 'c <duration>', '…'],
      ['a', '…', 'd', 'e'],
    ])
      expect(abridged(output, shown)).toEqual(shown);
    for (const shown of [
      ['a', '…', 'x'],
      ['b', '…', 'd', 'e'],
      ['a', '…', 'd'],
    ])
      expect(abridged(output, shown)).not.toEqual(shown);
  });

  it('keeps names, counts and words', () => {
    expect(masked('5 runs, 2 posts, step 3, 4 sent')).toEqual(['5 runs, 2 posts, step 3, 4 sent']);
  });
});

it('the commands of a snippet are its lines without comments, with continued lines joined', () => {
  const code = page('# first', 'npm ci && npm test', 'npx runspan dev \\', '  --port 1 # listens', '');
  expect(commandsOf(code)).toEqual(['npm ci', 'npm test', 'npx runspan dev --port 1']);
});

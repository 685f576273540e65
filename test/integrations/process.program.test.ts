// Programs in a process of their own must print the same and end in the same way with tracing.
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { moduleText, runNode } from '../support/program.ts';
import { localModel } from './local-openai.ts';

const pathOf = (name: string) => fileURLToPath(new URL(`./programs/${name}.mjs`, import.meta.url));

/** Runs a program and removes stack frames, which differ, and random ids of messages. */
async function run(args: readonly string[], env: Record<string, string> = {}) {
  const { code, stdout, stderr } = await runNode(args, env);
  return {
    code,
    stdout: stdout.replaceAll(/run-[0-9a-f-]{36}/g, 'run-id'),
    stderr: stderr.replaceAll(/^\s+at .*\n|^(file|node):.*\n.*\n\s*\^+\n/gm, ''),
  };
}

describe('a program with the AI SDK that', () => {
  const runAi = (kind: 'bare' | 'wrapped', program: string) => run(['--expose-gc', pathOf('ai'), kind, program]);

  test.each([
    ['leaves a rejection unhandled', 1, /RangeError: out of tune/],
    ['reads a stream that fails, without onError', 0, /RangeError: out of tune/],
    ['awaits the text of a stream that fails', 1, /NoOutputGenerated/],
    ['never reads a stream that fails', 0, /^$/],
  ])('%s ends in the same way with tracing', async (title, code, stderr) => {
    const [bare, wrapped] = await Promise.all([runAi('bare', title), runAi('wrapped', title)]);
    expect(bare).toMatchObject({ code, stderr: expect.stringMatching(stderr) });
    expect(wrapped).toEqual(bare);
  });

  test('drops a stream has interrupted runs after the stream is collected', async () => {
    const { code, stdout, stderr } = await runAi('wrapped', 'drops a stream');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toEqual([
      ['streamText', true, 'interrupted'],
      ['mock-model-id', true, 'interrupted'],
    ]);
  });
});

const setUp = `
  import Anthropic from '@anthropic-ai/sdk';
  import { wrapAnthropic } from 'runspan/anthropic';
  import { recordRuns } from 'runspan/testing';
  recordRuns();
  const bare = new Anthropic({ apiKey: 'a', baseURL: process.env.MODEL, maxRetries: 0, logLevel: 'off' });
  const { messages } = process.env.TRACED ? wrapAnthropic(bare) : bare;
  const body = { model: 'fail-400', max_tokens: 9, messages: [{ role: 'user', content: 'a' }] };
`;

test.each([
  ['an unhandled', 'messages.create(body);'],
  ['an awaited', 'await messages.create(body);'],
  ["a helper's", "messages.stream(body).on('text', () => {});"],
])('%s rejection of an SDK ends a program in the same way', async (_, program) => {
  const { url } = await localModel();
  const end = (env: Record<string, string>) => run(moduleText(setUp + program), { MODEL: url, ...env });
  const [bare, traced] = await Promise.all([end({}), end({ TRACED: 'yes' })]);
  expect(traced).toEqual(bare);
  expect(bare).toMatchObject({ code: 1, stderr: expect.stringContaining('BadRequestError: 400') });
});

test.each(['true', 'false'])(
  'a program of LangChain ends in the same way, LANGCHAIN_CALLBACKS_BACKGROUND=%s',
  async (background) => {
    const end = (kind: string) => run([pathOf('langchain'), kind], { LANGCHAIN_CALLBACKS_BACKGROUND: background });
    const [bare, traced] = await Promise.all([end('bare'), end('traced')]);
    expect(traced).toEqual(bare);
    expect(bare).toMatchObject({ code: 1, stderr: expect.stringContaining('Error: unhandled') });
    for (const line of ['one two', 'RangeError: refused']) expect(bare.stdout).toContain(line);
  },
);

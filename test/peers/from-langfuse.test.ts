// The programs of docs/from-langfuse.md. The expected runs are written by hand.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RunRecord } from '#src/run/record.ts';
import type { Snippet } from '../package/snippets.ts';
import { type OpenAiServer, startOpenAiServer, USAGE_METADATA as USAGE } from '../support/openai-server.ts';
import { startProgram, startRunspan } from '../support/program.ts';
import { startReceiver } from '../support/receiver.ts';
import { asInstalled, packagesFor, snippetsIn } from './application.ts';
import { type Collector, startCollector } from './collector.ts';
import { laterNode } from './later-node.ts';
import { type DrawnRun, drawn } from './otel-runs.ts';

const PAGE = 'docs/from-langfuse.md';
const snippets = snippetsIn(PAGE);
const [kept, rewritten] = snippets.filter(({ language }) => language === 'js') as [Snippet, Snippet];
const [keptTree, rewrittenTree] = snippets.filter(({ language }) => language === 'text').map(({ code }) => code);

let model: OpenAiServer;

beforeAll(async () => {
  model = await startOpenAiServer();
});

afterAll(() => model.close());

/** Returns the command of a program of the page, with the packages that the page installs. */
function commandOf(program: Snippet): string[] {
  return [laterNode(), asInstalled(program.code, packagesFor(program))];
}

function environmentOf(langfuse: Collector): Record<string, string> {
  return {
    LANGFUSE_BASE_URL: langfuse.url,
    LANGFUSE_PUBLIC_KEY: 'public',
    LANGFUSE_SECRET_KEY: 'secret',
    OPENAI_BASE_URL: model.url,
    OPENAI_API_KEY: 'local',
  };
}

async function run(program: Snippet): Promise<{ runs: DrawnRun[]; tree: string[]; langfuse: Collector }> {
  const receiver = await startReceiver();
  const langfuse = await startCollector();
  const env = { RUNSPAN_ENDPOINT: receiver.url, ...environmentOf(langfuse) };
  const { code, stderr } = await startProgram(commandOf(program), env).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const runs = (await receiver.runs()) as RunRecord[];
  const tree = runs.map((one) => `${one.parent_run_id === undefined ? '' : '  '}${one.name} (${one.run_type})`);
  return { runs: drawn(runs), tree, langfuse };
}

/** Returns the lines in the order of the alphabet, because spans that start in the same millisecond have no order. */
function linesOf(tree = ''): string[] {
  return tree.trimEnd().split('\n').sort();
}

const QUESTION = { messages: [{ role: 'user', content: 'tea? a page about tea' }] };
const ANSWER = { role: 'assistant', content: 'It is raining.' };
const OF_TRACE = { user_id: 'u1', thread_id: 's1' };
const tags = ['demo'];

/** Returns the tree of one run of the program, with the outputs under `key`. */
const runsOf = (pages: unknown, key: string, call: object, model: string) => [
  {
    name: 'answer',
    type: 'chain',
    inputs: { input: 'tea' },
    outputs: { [key]: 'It is raining.' },
    tags,
    metadata: { ...OF_TRACE, pages },
    below: [
      {
        ...call,
        type: 'llm',
        inputs: QUESTION,
        tags,
        metadata: { ...OF_TRACE, ls_model_name: model, ls_temperature: 0, usage_metadata: USAGE },
      },
      {
        name: 'search',
        type: 'retriever',
        inputs: { input: 'tea' },
        outputs: { [key]: ['a page about tea'] },
        tags,
        metadata: OF_TRACE,
      },
    ],
  },
];

describe(PAGE, () => {
  test('the program with the added processor sends its observations to Langfuse and as runs', async () => {
    const { runs, tree, langfuse } = await run(kept);
    expect(langfuse.spans('/api/public/otel/v1/traces').map(({ name }) => name)).toEqual([
      'search',
      'OpenAI.chat',
      'answer',
    ]);
    expect(tree.sort()).toEqual(linesOf(keptTree));
    const outputs = { ...ANSWER, usage_metadata: USAGE };
    expect(runs).toMatchObject(runsOf('1', 'output', { name: 'OpenAI.chat', outputs }, 'small-2026'));
  });

  test.each([
    ['with the added processor', kept, 'OpenAI.chat'],
    ['that is rewritten', rewritten, 'openai.chat.completions'],
  ])('the program %s records each call once under `runspan dev`', async (_, program, call) => {
    const env = environmentOf(await startCollector());
    const { code, stdout } = await startRunspan(['dev', '--port', '0', '--', ...commandOf(program)], env).ended;
    expect(code).toBe(0);
    const lines = stdout.split('\n').filter((line) => line.includes(' · '));
    expect(lines.map((line) => line.split(' · ')[0]?.replace(/^\W+/, '')).sort()).toEqual(
      ['answer', 'search', call].sort(),
    );
    expect(lines.filter((line) => line.includes('29 tokens'))).toHaveLength(1);
  });

  test('the rewritten program sends the same tree of runs', async () => {
    const { runs, tree, langfuse } = await run(rewritten);
    expect(langfuse.spans('/api/public/otel/v1/traces')).toEqual([]);
    expect(tree.sort()).toEqual(linesOf(rewrittenTree));
    const call = {
      name: 'openai.chat.completions',
      outputs: { choices: [{ message: ANSWER }], usage_metadata: USAGE },
    };
    expect(runs).toMatchObject(runsOf(1, 'outputs', call, 'small'));
  });
});

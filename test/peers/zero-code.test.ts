import { readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { transformWithEsbuild } from 'vite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { root } from '../support/folders.ts';
import { type Ended, startProgram, startRunspan } from '../support/program.ts';
import { laterNode } from './later-node.ts';
import { type Models, startModels } from './zero-code/models.ts';

const folder = join(root, 'test/peers/zero-code');
const programs = join(folder, 'programs');

let models: Models;
let env: Record<string, string>;
beforeAll(async () => {
  models = await startModels();
  // Modules can be patched since Node 22.15.
  env = { ...models.env, PATH: [dirname(laterNode()), process.env.PATH].join(delimiter), NEXT_TELEMETRY_DISABLED: '1' };
});
afterAll(() => models?.close());

/** Runs a command by itself, and under `runspan dev`. */
async function bothWays(command: readonly string[]): Promise<[alone: Ended, traced: Ended]> {
  return Promise.all([
    startProgram(command, env, folder).ended,
    startRunspan(['dev', '--port', '0', '--', ...command], env, folder).ended,
  ]);
}

/** The output of `runspan dev` without durations, the address and the drawn traces. */
function withoutTraces(stdout: string, traces: readonly string[]): string {
  const masked = stdout.replace(/^runspan listens on \S+\n/, '').replaceAll(/ · [\d.]+ m?s\b/g, '');
  return traces.reduce((text, trace) => text.replace(`\n${trace}\n`, ''), masked);
}

/** Expects that a command prints and ends as without runspan, and that these traces are drawn. */
async function expectTraces(command: readonly string[], traces: readonly string[]): Promise<void> {
  const [alone, traced] = await bothWays(command);
  expect({ ...traced, stdout: withoutTraces(traced.stdout, traces) }).toEqual(alone);
}

/** The arguments of Node that run a program as CommonJS. */
async function asCommonJs(name: string): Promise<string[]> {
  const text = readFileSync(join(programs, name), 'utf8');
  return ['--input-type=commonjs', '-e', (await transformWithEsbuild(text, name, { format: 'cjs' })).code];
}

/** A call of OpenAI's chat completions with the question "Is it raining?". The local model counts words as tokens. */
const CHAT = 'openai.chat.completions · llm · 8 tokens (3 in, 5 out)';
const RESPONSE = 'openai.responses · llm · 8 tokens (3 in, 5 out)';

const GRAPH = `\
LangGraph · chain
├─ __start__ · chain
├─ ask · chain
│  ├─ ChatOpenAI · llm · 10 tokens (5 in, 5 out)
│  └─ RunnableLambda · chain
├─ look · chain
│  └─ weather · tool
└─ ask · chain
   ├─ ChatOpenAI · llm · 22 tokens (12 in, 10 out)
   └─ RunnableLambda · chain`;

const AGENT = `\
ToolLoopAgent.generate · chain
├─ small · llm · 10 tokens (5 in, 5 out)
├─ weather · tool
└─ small · llm · 22 tokens (12 in, 10 out)`;

const TRACES: Readonly<Record<string, readonly string[]>> = {
  'openai-chat.mjs': [
    'openai.chat.completions · llm · 10 tokens (5 in, 5 out)',
    'openai.chat.completions · llm · 10 tokens (6 in, 4 out)',
  ],
  'openai-responses.mjs': [RESPONSE, 'openai.responses · llm · 6 tokens (2 in, 4 out)'],
  'anthropic-stream.mjs': [
    'anthropic.messages · llm · 8 tokens (3 in, 5 out)',
    'anthropic.messages · llm · ✗ HTTP 400: The model was asked to fail.',
  ],
  'ai-sdk-agent.mjs': [AGENT],
  'langgraph.mjs': [GRAPH],
  'gemini-chat.mjs': Array(2).fill('gemini.generateContent · llm · 7 tokens (4 in, 3 out)'),
  'mistral.mjs': [CHAT, CHAT],
  'ollama.mjs': Array(2).fill('ollama.chat · llm · 7 tokens (4 in, 3 out)'),
  'raw-fetch.mjs': [CHAT],
};

describe.concurrent('under runspan dev, a program that does not import runspan', () => {
  it.each(Object.entries(TRACES))('%s has the same output and exit code, and its traces', async (name, traces) => {
    await expectTraces(['node', join(programs, name)], traces);
  });

  it.each(Object.entries(TRACES))('%s does as CommonJS, too', async (name, traces) => {
    await expectTraces(['node', ...(await asCommonJs(name))], traces);
  });

  it.each([
    ['npm', 'start', '--silent', CHAT],
    ['npx', 'tsx', 'programs/typed.ts', RESPONSE],
    ['npx', 'vite-node', 'programs/typed.ts', RESPONSE],
  ])('%s %s does, too', async (program, command, argument, trace) => {
    await expectTraces([program, command, argument], [trace]);
  });

  it('in Python, which sends OTLP', async () => {
    await expectTraces(['python3', join(programs, 'sends-otlp.py')], ['answer · chain']);
  });
});

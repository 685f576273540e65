import { readFileSync, rmSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { transformWithEsbuild } from 'vite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { root, temporaryFolder } from '../support/folders.ts';
import { type Ended, type Started, startProgram, startRunspan } from '../support/program.ts';
import { startReceiver } from '../support/receiver.ts';
import { filesBelow } from '../support/spool.ts';
import { testFolder } from '../support/test-folder.ts';
import { isEarlierNode, laterNode } from './later-node.ts';
import { type Models, startModels } from './zero-code/models.ts';

const folder = join(root, 'test/peers/zero-code');
const programs = join(folder, 'programs');

let models: Models;
let env: Record<string, string>;
beforeAll(async () => {
  models = await startModels();
  // Modules can be patched since Node 22.15.
  const PATH = [dirname(laterNode()), process.env.PATH].join(delimiter);
  // npm prints warnings on the user's settings, and the programs are also run without npm.
  env = { ...models.env, PATH, NEXT_TELEMETRY_DISABLED: '1', npm_config_loglevel: 'error' };
});
afterAll(() => models?.close());

const bundles = temporaryFolder();
afterAll(bundles.remove);

const starts = new Map<string, Promise<Ended>>();

/** Runs a command without runspan. Runs each command once, because several commands are compared with it. */
function alone(...command: string[]): Promise<Ended> {
  const key = command.join(' ');
  const ended = starts.get(key) ?? startProgram(command, env, folder).ended;
  starts.set(key, ended);
  return ended;
}

const moduleAlone = (name: string): Promise<Ended> => alone('node', join(programs, name));

const typedAlone = (): Promise<Ended> => alone('node_modules/.bin/tsx', 'programs/typed.ts');

function traced(command: readonly string[]): Promise<Ended> {
  return startRunspan(['dev', '--port', '0', '--', ...command], env, folder).ended;
}

/** The output of `runspan dev` without durations, costs, cached shares, addresses and the drawn traces. */
function withoutTraces(stdout: string, traces: readonly string[]): string {
  const masked = stdout
    .replace(/^runspan listens on \S+\n/, '')
    .replaceAll(/\nhttp:\S+\/\?trace=\S+$/gm, '')
    .replaceAll(/ · (?:[\d.]+ m?s\b|\$[\d.]+|\d+ % cached)/g, '');
  return traces.reduce((text, trace) => text.replace(`\n${trace}\n`, ''), masked);
}

/** Expects that `runspan dev` draws these traces, and that the command prints and ends as without runspan. */
async function expectTraces(command: readonly string[], traces: readonly string[], without: Ended): Promise<void> {
  const ended = await traced(command);
  expect({ ...ended, stdout: withoutTraces(ended.stdout, traces) }).toEqual(without);
}

async function asCommonJs(name: string): Promise<string[]> {
  const text = readFileSync(join(programs, name), 'utf8');
  return ['--input-type=commonjs', '-e', (await transformWithEsbuild(text, name, { format: 'cjs' })).code];
}

async function bundled(name: string): Promise<string> {
  const path = join(bundles.path, `${name}.cjs`);
  const esbuild = join(folder, 'node_modules/.bin/esbuild');
  const options = ['--bundle', '--platform=node', '--keep-names', '--log-level=error', `--outfile=${path}`];
  const { code, stderr } = await startProgram([esbuild, join(programs, name), ...options], env, folder).ended;
  if (code !== 0) throw new Error(stderr);
  return path;
}

/** A call of OpenAI's chat completions with the question "Is it raining?". The local model counts words as tokens. */
const CHAT = 'openai.chat.completions · llm · 8 tokens (3 in, 5 out)';
const RESPONSE = 'openai.responses · llm · 8 tokens (3 in, 5 out)';

/** The calls of a request are below a run for the request. */
const REQUEST = `\
POST /api/ask · chain
└─ ${RESPONSE}`;

const GRAPH = `\
LangGraph · chain · 40 tokens (20 in, 20 out)
├─ ask · chain
│  └─ ChatOpenAI · llm · 10 tokens (5 in, 5 out)
├─ look · chain
│  ├─ ${CHAT}
│  └─ weather · tool
└─ ask · chain
   └─ ChatOpenAI · llm · 22 tokens (12 in, 10 out)
+3 internal steps`;

const AGENT = `\
ToolLoopAgent.generate · chain · 32 tokens (17 in, 15 out)
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
  'langgraph.mjs': [GRAPH, CHAT],
  'gemini-chat.mjs': Array(2).fill('gemini.generateContent · llm · 7 tokens (4 in, 3 out)'),
  // The client does not ask for the tokens of a stream, and the local model reports them only if asked.
  'mistral.mjs': [CHAT, 'openai.chat.completions · llm'],
  'ollama.mjs': Array(2).fill('ollama.chat · llm · 7 tokens (4 in, 3 out)'),
  'raw-fetch.mjs': [CHAT],
};

/** Starts `next dev`, calls the route once, and stops the server. Returns the response and what the server printed. */
async function askNext(
  { child, printed, ended }: Started,
  isAnswered: RegExp,
  signal: NodeJS.Signals = 'SIGINT',
): Promise<[string, Ended]> {
  const [, url] = await printed(/Local: +(\S+)[\s\S]*Ready in/);
  const body = JSON.stringify({ question: 'Is it raining?' });
  const response = await fetch(`${url}/api/ask`, { method: 'POST', body });
  await printed(isAnswered);
  child.kill(signal);
  return [await response.text(), await ended];
}

/** The sorted lines without times and addresses. Next.js prints some lines at any time, and one only if it is slow. */
function steadyLines(stdout: string): string[] {
  return withoutTraces(stdout, [REQUEST])
    .replaceAll(/\b[\d.]+m?s\b/g, '_')
    .replaceAll(/:\d+$/gm, '')
    .split('\n')
    .filter((line) => !line.startsWith('○ Compiling'))
    .sort();
}

const today = join(root, 'test/peers/today');
const nextDev = ['node', join(today, 'node_modules/next/dist/bin/next'), 'dev', '--port', '0'];

/** The environment of a program with `runspan/register`, and the runs that have arrived or are on disk. */
async function registered() {
  const [receiver, spool] = [await startReceiver(), testFolder()];
  const NODE_OPTIONS = '--import runspan/register';
  const variables = { ...env, NODE_OPTIONS, RUNSPAN_ENDPOINT: receiver.url, RUNSPAN_SPOOL_DIR: spool };
  return { receiver, variables, files: () => filesBelow(spool).filter((path) => path.endsWith('.seg')) };
}

// `tsx` kills a program that does not answer a signal within 60 ms, as on a busy machine.
it.each(['tsx', 'tsx watch'])(
  'SIGTERM to %s with runspan/register ends it as without, and delivers the runs',
  { retry: 4 },
  async (loader) => {
    const end = async (variables: typeof env) => {
      const command = [...`node_modules/.bin/${loader}`.split(' '), 'programs/waiting.ts'];
      const { child, printed, ended } = startProgram(command, variables, folder);
      await printed(/You said/);
      child.kill('SIGTERM');
      return ended;
    };
    const { receiver, variables } = await registered();
    expect(await end(variables)).toEqual(await end(env));
    expect((await receiver.runs()).map(({ name }) => name)).toEqual(['openai.chat.completions']);
  },
);

it('SIGTERM to next dev with runspan/register ends it as without, and loses no run', async () => {
  const cwd = join(today, 'next-app');
  const { receiver, variables, files } = await registered();
  const [, { code, signal }] = await askNext(startProgram(nextDev, env, cwd), /POST .api.ask 200/, 'SIGTERM');
  const [, end] = await askNext(startProgram(nextDev, variables, cwd), /POST .api.ask 200/, 'SIGTERM');
  expect({ code: end.code, signal: end.signal }).toEqual({ code, signal });
  // Next.js ends the process itself, perhaps before the runs are sent.
  expect((await receiver.runs()).length + files().length).toBeGreaterThan(0);
});

it('under runspan dev, next dev with Turbopack has the same output and exit code, and its traces', async () => {
  const cwd = join(today, 'next-app');
  rmSync(join(cwd, '.next'), { recursive: true, force: true });
  const [answer, alone] = await askNext(startProgram(nextDev, env, cwd), /POST .api.ask 200/);
  const dev = startRunspan(['dev', '--port', '0', '--', ...nextDev], env, cwd);
  const [tracedAnswer, traced] = await askNext(dev, / · llm · /);
  expect(answer).toBe('{"text":"You said: Is it raining?"}');
  expect(tracedAnswer).toBe(answer);
  expect(traced.stdout).toMatch(/^POST \/api\/ask · chain · .*\n└─ openai.responses · llm · /m);
  const steady = {
    code: traced.code,
    signal: traced.signal,
    stderr: traced.stderr,
    stdout: steadyLines(traced.stdout),
  };
  expect(steady).toEqual({ ...alone, stdout: steadyLines(alone.stdout) });
});

describe.concurrent('under runspan dev, a program that does not import runspan', () => {
  it.each(Object.entries(TRACES))('%s has the same output and exit code, and its traces', async (name, traces) => {
    await expectTraces(['node', join(programs, name)], traces, await moduleAlone(name));
  });

  it.each(Object.entries(TRACES))('%s does as CommonJS, too', async (name, traces) => {
    const command = ['node', ...(await asCommonJs(name))];
    const module = await moduleAlone(name);
    // The stack of an uncaught error has other files in each format.
    await expectTraces(command, traces, module.stderr === '' ? module : await alone(...command));
  });

  it.each([
    ['npm', 'start', '--silent', CHAT, () => moduleAlone('raw-fetch.mjs')],
    ['npx', 'tsx', 'programs/typed.ts', RESPONSE, typedAlone],
    ['npx', 'tsx', 'programs/agent.cts', AGENT, () => moduleAlone('ai-sdk-agent.mjs')],
    ['npx', 'vite-node', 'programs/typed.ts', RESPONSE, typedAlone],
  ])('%s %s %s does, too', async (program, command, argument, trace, without) => {
    await expectTraces([program, command, argument], [trace], await without());
  });

  it('in a bundle has its model calls, and one line names the option that excludes the package', async () => {
    const alone = await moduleAlone('ai-sdk-agent.mjs');
    const ended = await traced(['node', await bundled('ai-sdk-agent.mjs')]);
    const calls = [
      'openai.chat.completions · llm · 10 tokens (5 in, 5 out)',
      'openai.chat.completions · llm · 22 tokens (12 in, 10 out)',
    ];
    const line =
      "runspan: a bundle contains the package ai, so only its model calls are recorded; exclude the package from the bundle, in Next.js with `serverExternalPackages: ['ai']`.\n";
    const stdout = withoutTraces(ended.stdout, calls);
    expect({ ...ended, stdout }).toEqual({ ...alone, stderr: line });
  });

  it('of LangGraph in a bundle has its steps from the tracer of LangSmith, and each model call once', async () => {
    await expectTraces(['node', await bundled('langgraph.mjs')], [GRAPH, CHAT], await moduleAlone('langgraph.mjs'));
  });

  it.runIf(isEarlierNode)('of LangGraph on a Node without hooks does, too', async () => {
    const command = [process.execPath, join(programs, 'langgraph.mjs')];
    await expectTraces(command, [GRAPH, CHAT], await moduleAlone('langgraph.mjs'));
  });

  it('in Python, which sends OTLP', async () => {
    const command = ['python3', join(programs, 'sends-otlp.py')];
    await expectTraces(command, ['answer · chain'], await alone(...command));
  });
});

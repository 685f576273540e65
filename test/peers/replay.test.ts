// Agents that `runspan dev` records, and whose model calls are answered from the fixture that `runspan test` writes.
import { basename, delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Replayed } from '#src/replay/replayed.ts';
import type { ReplayOptions } from '#src/replay/run-replay.ts';
import type { RunRecord } from '#src/run/record.ts';
import { outlineOf, type RunSnapshot, snapshotOf } from '#src/testing/snapshot.ts';
import { root, temporaryFolder } from '../support/folders.ts';
import { type Ended, startProgram } from '../support/program.ts';
import { laterNode } from './later-node.ts';
import { startModels } from './zero-code/models.ts';

const peers = join(root, 'test/peers');
const cli = join(root, 'dist/cli/main.js');

/** The folder of a program's package, the program with its arguments, and the outline of its trace. */
interface Agent {
  readonly package: string;
  readonly command: readonly string[];
  readonly outline: string;
}

const withCalls = (name: string, call: string): Agent => ({
  package: 'today',
  command: ['replay-agents.mjs', name],
  outline: `${name} (chain)\n  ${call} (llm)\n  weather (tool)\n  ${call} (llm)`,
});

const AGENTS: Readonly<Record<string, Agent>> = {
  'openai-chat': withCalls('openai-chat', 'openai.chat.completions'),
  'openai-responses': withCalls('openai-responses', 'openai.responses'),
  anthropic: withCalls('anthropic', 'anthropic.messages'),
  gemini: withCalls('gemini', 'gemini.generateContent'),
  'ai-sdk': {
    package: 'today',
    command: ['replay-agents.mjs', 'ai-sdk'],
    outline: 'streamText (chain)\n  small (llm)\n  weather (tool)\n  time (tool)\n  small (llm)',
  },
  'openai-agents': {
    package: 'today',
    command: ['replay-agents.mjs', 'openai-agents'],
    outline: `\
Agent workflow (chain)
  forecaster (chain)
    openai.responses (llm)
    weather (tool)
    openai.responses (llm)`,
  },
  langgraph: {
    package: 'zero-code',
    command: ['programs/replay-langgraph.mjs'],
    outline: `\
LangGraph (chain)
  __start__ (chain)
  agent (chain)
    RunnableSequence (chain)
      prompt (chain)
      ChatOpenAI (llm)
    RunnableLambda (chain)
  tools (chain)
    weather (tool)
  agent (chain)
    RunnableSequence (chain)
      prompt (chain)
      ChatOpenAI (llm)
    RunnableLambda (chain)`,
  },
};

/** The trace of a program as it was recorded, and the files that `runspan test` has written. */
interface Recording {
  readonly runs: readonly RunRecord[];
  readonly fixture: string;
  readonly test: string;
}

let env: Readonly<Record<string, string>>;
/** The recorded agents. The services of their models have ended. */
const recordings = new Map<string, Recording>();
const folders = new Map(['today', 'zero-code'].map((name) => [name, temporaryFolder(join(peers, name))]));

beforeAll(async () => {
  const models = await startModels();
  env = { ...models.env, PATH: [dirname(laterNode()), process.env.PATH].join(delimiter) };
  for (const [name, agent] of Object.entries(AGENTS)) recordings.set(name, await recorded(name, agent));
  const failed = withCalls('openai-chat', 'openai.chat.completions');
  recordings.set('failed', await recorded('failed', failed, { TOOL_FAILS: 'true' }));
  await models.close();
});
afterAll(() => {
  for (const { remove } of folders.values()) remove();
});

async function recorded(name: string, agent: Agent, more: Readonly<Record<string, string>> = {}): Promise<Recording> {
  const cwd = join(peers, agent.package);
  const folder = folders.get(agent.package)?.path ?? '';
  const store = ['--store', join(folder, `${name}.db`)];
  const command = ['dev', ...store, '--port', '0', '--json', '--', 'node', ...agent.command];
  const dev = await started([cli, ...command], cwd, more);
  const line = dev.stdout.split('\n').find((text) => text.startsWith('{"'));
  if (line === undefined) throw new Error(dev.stderr + dev.stdout);
  const out = ['--out', basename(folder), '--name', name, '--runner', 'node'];
  const { code, stderr } = await started([cli, 'test', ...store, ...out], cwd);
  expect([code, stderr]).toEqual([0, '']);
  const files = join(folder, name);
  return { runs: JSON.parse(line).runs, fixture: `${files}.trace.json`, test: `${files}.test.mjs` };
}

/** Several programs start at the same time. */
const LIFE_MAX_MS = 100_000;

function started(args: readonly string[], cwd: string, more: Readonly<Record<string, string>> = {}): Promise<Ended> {
  return startProgram([laterNode(), ...args], { ...env, ...more }, cwd, LIFE_MAX_MS).ended;
}

type Outcome = Replayed & { readonly code?: string; readonly message?: string };

async function replays(name: string, ...options: ReplayOptions[]): Promise<Outcome[]> {
  const { fixture = '' } = recordings.get(name) ?? {};
  const { stdout, stderr } = await started(['today/replays.mjs', fixture, JSON.stringify(options)], peers);
  if (stdout === '') throw new Error(stderr);
  return JSON.parse(stdout);
}

/** Returns the runs without what differs between executions, such as ids that frameworks create and ids of requests. */
function steady(runs: readonly RunRecord[]): RunSnapshot[] {
  const text = JSON.stringify(snapshotOf({ runs }), (key, value) => (key === 'request_id' ? undefined : value));
  return JSON.parse(text.replaceAll(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, '[id]'));
}

it.concurrent.each(Object.entries(AGENTS))(
  'an agent of %s has the recorded trace when it is replayed',
  async (name, { outline }) => {
    const { runs = [] } = recordings.get(name) ?? {};
    expect(outlineOf({ runs })).toBe(outline);
    const env = { TOOL_RESULT: 'snow' };
    const [same, changed, accepted] = await replays(name, {}, { env }, { mode: 'failed', env });
    expect(same?.message).toBeUndefined();
    expect(steady(same?.runs ?? [])).toEqual(steady(runs));
    expect(same).toMatchObject({ notes: [], wasStopped: false });
    expect(changed?.code).toBe('RUNSPAN_REPLAY_MISMATCH');
    expect(changed?.message).toMatch(/recorded ".*rain in.*", got ".*snow/);
    expect(accepted?.notes).toEqual([expect.stringMatching(/recorded ".*rain in.*", got ".*snow/)]);
    expect(outlineOf(accepted ?? { runs: [] })).toBe(outline);
  },
);

describe.concurrent('the written test', () => {
  it('passes with `node --test`, and fails if the result of a tool differs', async () => {
    const { test = '' } = recordings.get('anthropic') ?? {};
    expect(await started(['--test', test], peers)).toMatchObject({ code: 0 });
    const { code, stdout } = await started(['--test', test], peers, { TOOL_RESULT: 'snow' });
    expect(code).toBe(1);
    expect(stdout).toMatch(/content: recorded ".*rain in.*", got "snow"/);
  });

  it('of a trace whose tool has failed fails, and passes when the tool is fixed', async () => {
    const { runs = [], test = '' } = recordings.get('failed') ?? {};
    const outline = 'openai-chat (chain)ERROR\n  openai.chat.completions (llm)\n  weather (tool)ERROR';
    expect(outlineOf({ runs })).toBe(outline.replaceAll('ERROR', ': Error: no weather'));
    expect(await started(['--test', test], peers)).toMatchObject({ code: 0 });
    expect(await started(['--test', test], peers, { TOOL_FAILS: 'true' })).toMatchObject({ code: 1 });
    const [passed, failing] = await replays('failed', {}, { env: { TOOL_FAILS: 'true' } });
    expect(passed).toMatchObject({ wasStopped: true, notes: [] });
    expect(outlineOf(passed ?? { runs: [] })).toBe(`\
openai-chat (chain): open
  openai.chat.completions (llm)
  weather (tool)
  openai.chat.completions (llm): open`);
    expect(failing).toMatchObject({ wasStopped: false });
    expect(steady(failing?.runs ?? [])).toEqual(steady(runs));
  });
});

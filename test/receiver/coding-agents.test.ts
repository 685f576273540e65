// Requests that Claude Code 2.1.332 and Codex 0.171.0 sent with the settings of `runspan dev`, in their JSON form. Local
// servers took the place of the model APIs. Ids of users and paths are replaced, long texts are cut, and most spans of
// Codex that do not become runs are left out.
import { readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { SpanSelection } from '#src/receiver/ingest/span-selection.ts';
import { receiverWith } from '#src/receiver/receiver.ts';
import { DEFAULT_SCOPE } from '#src/receiver/store/store.ts';
import { MemoryStore } from '#src/receiver.ts';
import { runsIn } from './local-store.ts';
import { sendJson } from './wire.ts';

type Recording = readonly { readonly path: string; readonly body: object }[];

/** A run. Typed loosely, so that tests can read all fields without casts. */
// biome-ignore lint/suspicious/noExplicitAny: see above
type Run = Record<string, any>;

const recorded = (name: string): Recording =>
  JSON.parse(readFileSync(new URL(`recorded/${name}.json`, import.meta.url), 'utf8'));

/** Sends the requests to a receiver that selects spans as that of `runspan dev`. */
async function storeAfter(recording: Recording): Promise<MemoryStore> {
  const store = new MemoryStore();
  const selection = new SpanSelection();
  const receiver = await receiverWith({ store }, { select: (spans) => selection.select(spans) });
  onTestFinished(() => receiver.close());
  for (const { path, body } of recording) expect((await sendJson(receiver, 'POST', path, body)).status).toBe(200);
  return store;
}

const runsOf = async (recording: Recording): Promise<Run[]> => runsIn(await storeAfter(recording));

/** Returns the lines of a tree: the name and the type of each run, indented by its depth. */
function treeOf(runs: readonly Run[], parent?: string, indent = ''): string[] {
  return runs
    .filter(({ parent_run_id }) => parent_run_id === parent)
    .flatMap(({ id, name, run_type }) => [`${indent}${name} ${run_type}`, ...treeOf(runs, id, `${indent}  `)]);
}

/** Returns the model, usage and cost of each run with usage. */
async function usageAfter(recording: Recording): Promise<Run[]> {
  const store = await storeAfter(recording);
  const traces = new Set((await runsIn(store)).map(({ trace_id }) => trace_id));
  const outlines = await Promise.all([...traces].map((id) => store.outline(DEFAULT_SCOPE, id)));
  return outlines.flat().flatMap((text) => {
    const { name, run_type, model, usage }: Run = JSON.parse(text);
    return usage === undefined ? [] : [{ name, run_type, model, ...usage }];
  });
}

const named = (runs: readonly Run[], name: string): Run[] => runs.filter((run) => run.name === name);
const threadsOf = (runs: readonly Run[]): string[] => [...new Set(runs.map(({ extra }) => extra.metadata.thread_id))];
const messages = (role: string, ...contents: string[]) => ({
  messages: contents.map((content) => ({ role, content })),
});
const times = (count: number, line: string): string[] => Array.from({ length: count }, () => line);

const PROMPT = messages('user', 'Run user-prompt-secret, then repeat what the subagent says');

/** Matches parts of the prompts and answers, and of the inputs and outputs of tools. */
const SECRET = /[a-z-]+-secret/;

const ORDERS: [string, (recording: Recording) => Recording][] = [
  ['before', (recording) => recording],
  ['after', (recording) => recording.toReversed()],
];

const CLAUDE = 'claude-code-2.1.332';

test.each(['', '-content'])(
  'a session of Claude Code%s is a thread with a trace for each interaction',
  async (name) => {
    const runs = await runsOf(recorded(CLAUDE + name));
    expect(treeOf(runs)).toEqual([
      'Claude Code chain',
      '  claude_code.llm_request llm',
      '  Bash tool',
      '    claude_code.tool.blocked_on_user chain',
      '    claude_code.tool.execution chain',
      '  claude_code.llm_request llm',
      '  Bash tool',
      '    claude_code.tool.execution chain',
      ...times(4, '  claude_code.llm_request llm'),
      '  Agent tool',
      '    claude_code.tool.execution chain',
      '      claude_code.llm_request llm',
      '      Bash tool',
      '        claude_code.tool.execution chain',
      '      claude_code.llm_request llm',
      '  claude_code.llm_request llm',
      'Claude Code chain',
      '  claude_code.llm_request llm',
    ]);
    expect(threadsOf(runs)).toEqual([expect.stringMatching(/^[\da-f-]{36}$/)]);
    expect(named(runs, 'claude_code.tool.execution').map(({ error }) => error)).toEqual([
      undefined,
      expect.stringMatching(/^tool_error: (ShellError|Shell command failed)$/),
      undefined,
      undefined,
    ]);
  },
);

test('the token counts of Claude Code count once, with cached tokens and cost', async () => {
  const usage = await usageAfter(recorded(CLAUDE));
  expect(usage).toHaveLength(10);
  // 101 new input tokens at 3 USD per million, 50 read from the cache at 0.3, 20 written to it at 3.75, and 30 output
  // tokens at 15. Claude Code calculates the same cost.
  expect(usage[0]).toMatchObject({
    run_type: 'llm',
    model: 'claude-sonnet-4-5',
    input_tokens: 171,
    cached_tokens: 50,
    output_tokens: 30,
    total_cost: expect.closeTo(0.000843, 12),
  });
});

test('without content, no prompt, answer, tool input or tool output of Claude Code is recorded', async () => {
  const runs = await runsOf(recorded(CLAUDE));
  expect(JSON.stringify(runs)).not.toMatch(SECRET);
  expect(JSON.stringify(runs)).not.toMatch(/REDACTED|bash_argv0/);
  expect(named(runs, 'Claude Code').map(({ inputs, outputs }) => [inputs, outputs])).toEqual([
    [{}, undefined],
    [{}, undefined],
  ]);
});

test.each(ORDERS)(
  'with content, spans of Claude Code that arrive %s the log records have both contents',
  async (_, ordered) => {
    const runs = await runsOf(ordered(recorded(`${CLAUDE}-content`)));
    const [interaction] = named(runs, 'Claude Code');
    expect(interaction?.inputs).toEqual(PROMPT);
    expect(interaction?.outputs).toEqual(messages('assistant', 'I run a command.', 'The shell says answer-secret'));
    expect(named(runs, 'Bash').map(({ inputs, outputs }) => [inputs, outputs])).toEqual([
      [{ command: 'echo input-secret | sed s,input,output,' }, { output: 'output-secret' }],
      [{ command: 'cat /missing-secret' }, undefined],
      [{ command: 'echo subagent-secret' }, { output: 'subagent-secret' }],
    ]);
    const answer = messages('assistant', 'The subagent says subagent-answer-secret');
    expect(named(runs, 'claude_code.tool.execution').map(({ outputs }) => outputs)).toEqual([
      undefined,
      undefined,
      answer,
      undefined,
    ]);
  },
);

test('the detailed tracing of Claude Code adds the messages of model calls, and the whole input and output of tools', async () => {
  const [interaction, call, tool] = await runsOf(recorded(`${CLAUDE}-detailed`));
  expect(interaction?.inputs).toEqual(PROMPT);
  expect(call?.inputs).toEqual(messages('user', '[USER]\nRun user-prompt-secret, then repeat what the subagent says'));
  expect(call?.outputs).toMatchObject(messages('assistant', 'I run a command.'));
  expect(tool?.inputs).toEqual({ command: 'echo input-secret | sed s,input,output,', description: 'say hi' });
  expect(tool?.outputs).toMatchObject({ stdout: 'output-secret', interrupted: false });
  for (const run of [interaction, tool]) expect(JSON.stringify(run?.extra)).not.toMatch(SECRET);
});

test('a failed model call of Claude Code has the error of the API', async () => {
  const [interaction, call] = await runsOf(recorded(`${CLAUDE}-error`));
  expect([interaction?.error, call?.error]).toEqual([undefined, 'invalid request']);
});

const CODEX = 'codex-0.171.0-content';
const spansOnly = (recording: Recording): Recording => recording.filter(({ path }) => path === '/v1/traces');

test('a turn of Codex is a trace with its model calls and tool calls, and a session a thread', async () => {
  const runs = await runsOf(spansOnly(recorded(CODEX)));
  expect(treeOf(runs)).toEqual([
    'Codex chain',
    ...['exec_command', 'exec_command', 'multi_agent_v1spawn_agent', 'multi_agent_v1wait_agent'].flatMap((tool) => [
      '  codex.sampling llm',
      `  ${tool} tool`,
    ]),
    '  codex.sampling llm',
    // The turn of the subagent.
    'Codex chain',
    '  codex.sampling llm',
    '  exec_command tool',
    '  codex.sampling llm',
  ]);
  expect(threadsOf(runs)).toHaveLength(2);
  expect(JSON.stringify(runs)).not.toMatch(SECRET);
});

test('a span of another program with a similar target is kept', async () => {
  const [request] = spansOnly(recorded(CODEX)) as [Recording[number]];
  const renamed = JSON.stringify(request.body).replaceAll('codex_exec', 'shop');
  const store = await storeAfter([{ ...request, body: JSON.parse(renamed) }]);
  expect((await runsIn(store)).map(({ name }) => name)).toContain('receiving');
});

test('the token counts of a turn of Codex count once, with cached tokens and cost', async () => {
  // At 1.25 USD per million new input tokens, 0.125 per million read from the cache, and 10 per million output tokens.
  expect(await usageAfter(recorded(CODEX))).toMatchObject([
    {
      name: 'Codex',
      model: 'gpt-5-codex',
      input_tokens: 1018,
      cached_tokens: 250,
      output_tokens: 150,
      total_cost: expect.closeTo(0.00249125, 12),
    },
    { name: 'Codex', input_tokens: 410, cached_tokens: 100, output_tokens: 60, total_cost: expect.closeTo(0.001, 12) },
  ]);
});

test.each(ORDERS)(
  'with content, spans of Codex that arrive %s the log records have both contents',
  async (_, ordered) => {
    const runs = await runsOf(ordered(recorded(CODEX)));
    expect(named(runs, 'Codex').map(({ inputs, outputs }) => [inputs, outputs])).toEqual([
      [PROMPT, messages('assistant', 'The shell says answer-secret')],
      [
        messages('user', 'Greet subagent-prompt-secret'),
        messages('assistant', 'The subagent says subagent-answer-secret'),
      ],
    ]);
    const [first] = named(runs, 'exec_command');
    expect(first?.inputs).toEqual({ cmd: 'echo input-secret | sed s,input,output,' });
    expect(first?.outputs.output).toMatch(/\nProcess exited with code 0\n(?:.*\n)*output-secret\n$/);
  },
);

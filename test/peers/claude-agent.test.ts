// The Claude Agent SDK with a program that replays what Claude Code wrote: its binary is too large to install.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { fieldsOf } from '#src/payload/fields.ts';
import type { RunRecord } from '#src/run/record.ts';
import { type Registered, registered } from '../integrations/registered.ts';
import { testFolder } from '../support/test-folder.ts';
import { laterNode } from './later-node.ts';

const today = fileURLToPath(new URL('./today/', import.meta.url));
const pathToClaudeCodeExecutable = fileURLToPath(new URL('./claude-agent/claude-code.mjs', import.meta.url));

const PROGRAM = `
  import * as sdk from '@anthropic-ai/claude-agent-sdk';
  import { shutdown, traceable } from 'runspan';
  import { wrapClaudeAgentSDK } from 'runspan/claude-agent';
  import { z } from 'zod';
  const { query, tool, createSdkMcpServer } = WRAPPED;
  const find = traceable(async (item) => item + ' costs 3', { name: 'find' });
  const price = tool('price', 'Prices', { item: z.string() }, async ({ item }) => ({ content: [{ type: 'text', text: await find(item) }] }));
  const abortController = new AbortController();
  const hooked = [];
  const options = {
    abortController,
    pathToClaudeCodeExecutable: ${JSON.stringify(pathToClaudeCodeExecutable)},
    mcpServers: { shop: createSdkMcpServer({ name: 'shop', tools: [price] }) },
    hooks: { PreToolUse: [{ hooks: [async (input, id) => { hooked.push(id); return {}; }] }] },
  };
  const read = async (messages, onMessage = () => {}) => {
    try {
      for await (const message of messages) {
        console.log(message.type, message.message?.id ?? message.subtype ?? message.event?.type);
        if (onMessage(message) === 'leave') break;
      }
    } catch (error) { console.log(error.message); }
    console.log(hooked);
  };`;

const REGISTER = ['--import', import.meta.resolve('runspan/register')];

async function run(main: string, env: Record<string, string>, isWrapped = true, args = REGISTER): Promise<Registered> {
  const wrapped = isWrapped ? 'wrapClaudeAgentSDK(sdk)' : 'sdk';
  const code = `${PROGRAM.replace('WRAPPED', wrapped)}\n${main}\nawait shutdown();`;
  const ended = await registered([laterNode(), ...args, '--input-type=module', '-e', code], env, today);
  const others = ended.stderr.replace(/^runspan: undelivered runs .*\n/, '');
  expect([ended.code, others]).toEqual([0, '']);
  return ended;
}

const ofType = (runs: readonly RunRecord[], type: string): RunRecord[] =>
  runs
    .filter(({ run_type }) => run_type === type)
    .sort((one, other) => (one.dotted_order < other.dotted_order ? -1 : 1));
const sumOf = (runs: readonly RunRecord[], key: string): number =>
  runs.reduce((sum, { outputs }) => sum + Number(fieldsOf(outputs?.usage_metadata)[key]), 0);
const LLM = 'anthropic.messages';

test('a query is a run with its turns, its tools and a subagent in the background below its tool', async () => {
  const main = `await traceable(() => read(query({ prompt: 'Do it.', options })), { name: 'main' })();`;
  const { tree, runs } = await run(main, { RECORDING: 'subagent' });
  expect(tree).toEqual([
    ...['main', '  claude-agent', `    ${LLM}`, '    Bash', `    ${LLM}`, '    Bash', `    ${LLM}`, '    Agent'],
    ...[`      ${LLM}`, '      Bash', `      ${LLM}`, `    ${LLM}`, `    ${LLM}`],
  ]);
  const turns = ofType(runs, 'llm');
  // 125 to 131 input tokens, and for each turn 50 that are read from the cache and 20 that are written to it. The result
  // reports 210 output tokens.
  expect([sumOf(turns, 'input_tokens'), sumOf(turns, 'output_tokens')]).toEqual([896 + 7 * 70, 210]);
  expect(turns[0]).toMatchObject({
    inputs: { messages: [{ role: 'user', content: 'Do it.' }] },
    outputs: {
      content: [{ text: 'I run a command.' }, { type: 'tool_use', id: 'toolu_1' }],
      usage_metadata: { input_tokens: 195, input_token_details: { cache_read: 50, ephemeral_5m_input_tokens: 20 } },
    },
    extra: { metadata: { ls_provider: 'anthropic', ls_model_name: 'claude-sonnet-4-5', response_id: 'msg_25' } },
  });
  expect(turns.at(-1)?.outputs).toMatchObject({ stop_reason: 'end_turn' });
  const [bash, failed, agent] = ofType(runs, 'tool');
  expect(bash).toMatchObject({ inputs: { description: 'say hi' }, outputs: { output: 'output' } });
  expect(bash?.extra?.metadata).toMatchObject({ tool_call_id: 'toolu_1' });
  expect(failed?.error).toBe('Exit code 1\ncat: /missing: No such file or directory');
  expect(agent?.outputs).toEqual({ output: 'The subagent says subagent-answer' });
  expect(runs.find(({ name }) => name === 'claude-agent')).toMatchObject({
    run_type: 'chain',
    inputs: { messages: [{ role: 'user', content: 'Do it.' }] },
    outputs: { result: 'The shell says answer' },
    extra: {
      metadata: {
        thread_id: '4b19eaae-bc36-4d93-8be2-2aa7359fa444',
        ls_model_name: 'claude-sonnet-4-5',
        usage_metadata: { input_tokens: 896 + 7 * 70, output_tokens: 210, total_cost: 0.006468 },
      },
    },
  });
});

test('with partial messages, turns have their own counts, and handlers of tools are below their runs', async () => {
  const { tree, runs } = await run(
    `await read(query({ prompt: 'Prices?', options: { ...options, includePartialMessages: true } }));`,
    { RECORDING: 'tools' },
  );
  const tool = ['  mcp__shop__price', '    find'];
  expect(tree).toEqual(['claude-agent', `  ${LLM}`, ...tool, ...tool, `  ${LLM}`]);
  const turns = ofType(runs, 'llm');
  const counts = turns.map(({ outputs, events }) => [outputs?.stop_reason, outputs?.usage, events?.[0]?.name]);
  const usage = { output_tokens: 30 };
  expect(counts).toMatchObject([
    ['tool_use', usage, 'new_token'],
    ['end_turn', usage, 'new_token'],
  ]);
});

test.each([
  ['max-turns', '', `() => {}`, 'error', 'Reached maximum number of turns (1)'],
  ['max-turns', '', `({ type }) => type === 'result' && 'leave'`, 'error', 'Reached maximum number of turns (1)'],
  ['subagent', '', `({ type }) => type === 'result' && 'leave'`, undefined, undefined],
  ['subagent', '7', `({ type }) => type === 'assistant' && 'leave'`, 'cancelled', undefined],
  ['subagent', '7', `({ message }) => message?.content[0].id && abortController.abort()`, 'cancelled', 'aborted'],
  ['subagent', '7', `({ message }) => message?.content[0].id && messages.close()`, 'cancelled', undefined],
])(
  'the recording %s, of which %s lines are sent, read by %s, ends as %s',
  async (RECORDING, LINES, reader, end, error) => {
    const main = `const messages = query({ prompt: 'Do it.', options }); await read(messages, ${reader});`;
    const { runs } = await run(main, { RECORDING, ...(LINES && { LINES }) });
    const agent = runs.find(({ name }) => name === 'claude-agent');
    expect(agent?.extra?.runspan_end_reason ?? (agent?.error && 'error')).toBe(end);
    expect(agent?.error ?? '').toContain(error ?? '');
    expect(runs.filter(({ end_time }) => end_time === undefined)).toEqual([]);
  },
);

test('prompts that the program generates are recorded when Claude Code has read them', async () => {
  const { runs } = await run(
    `async function* prompts() { yield { type: 'user', message: { role: 'user', content: 'First.' }, parent_tool_use_id: null }; }
    await read(query({ prompt: prompts(), options }));`,
    { RECORDING: 'max-turns' },
  );
  const inputs = { messages: [{ role: 'user', content: 'First.' }] };
  expect(runs.find(({ name }) => name === 'claude-agent')?.inputs).toEqual(inputs);
  expect(ofType(runs, 'llm')[0]?.inputs).toEqual(inputs);
});

test('runspan/register records an untouched program, which behaves as without it, and with the same tree', async () => {
  const folder = testFolder();
  const inputOf = (name: string): string[] => readFileSync(join(folder, name), 'utf8').split('\n');
  for (const RECORDING of ['subagent', 'tools', 'max-turns']) {
    const main = `await read(query({ prompt: 'Do it.', options }));`;
    const given = (LOG: string) => ({ RECORDING, LOG: join(folder, LOG) });
    const bare = await run(main, given(`${RECORDING}-bare`), false, []);
    const registered = await run(main, given(`${RECORDING}-registered`), false);
    const wrapped = await run(main, given(`${RECORDING}-wrapped`), true, []);
    expect([registered.stdout, wrapped.stdout]).toEqual([bare.stdout, bare.stdout]);
    expect(registered.tree).toEqual(wrapped.tree);
    for (const name of ['registered', 'wrapped']) {
      expect(inputOf(`${RECORDING}-${name}`)).toEqual(inputOf(`${RECORDING}-bare`));
    }
  }
});

test.each([
  ['<receiver>', 'none none'],
  ['http://collector.example', 'otlp undefined'],
])('with OTLP sent to %s, the telemetry of Claude Code is %s', async (endpoint, expected) => {
  const { stdout } = await run(
    `const spawnClaudeCodeProcess = ({ env }) => { console.log(env.OTEL_TRACES_EXPORTER, env.OTEL_LOGS_EXPORTER); process.exit(); };
    query({ prompt: 'Do it.', options: { ...options, spawnClaudeCodeProcess } });`,
    { CLAUDE_CODE_ENABLE_TELEMETRY: '1', OTEL_TRACES_EXPORTER: 'otlp', OTEL_EXPORTER_OTLP_ENDPOINT: endpoint },
  );
  expect(stdout).toBe(`${expected}\n`);
});

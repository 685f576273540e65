// What holds for every `wrap…` function: what it returns, its options, and how it is undone.
import * as ai from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { describe, expect, test } from 'vitest';
import { unwrapAISDK, unwrapModel, wrapAISDK, wrapModel } from '#src/ai.ts';
import { unwrapBedrock, wrapBedrock } from '#src/bedrock.ts';
import { unwrapClaudeAgentSDK, wrapClaudeAgentSDK } from '#src/claude-agent.ts';
import type { RunRecord, WrapOptions } from '#src/index.ts';
import { unwrapMCP, wrapMCP } from '#src/mcp.ts';
import { record } from '../instrument/recorder.ts';
import { logLines } from '../support/log-lines.ts';
import { chunksOf, localModel } from './local-openai.ts';
import { sdks } from './sdks.ts';

type Wrap = (sdk: never, options?: WrapOptions) => object;

const ASKED = { city: 'Cork' };
const block = { type: 'tool_use', id: 'toolu_1', name: 'weather', input: ASKED };
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const toolCall = { type: 'tool-call', toolCallId: 'call_1', toolName: 'weather', input: JSON.stringify(ASKED) };

function mockModel() {
  const answers = [[toolCall], [{ type: 'text', text: 'Rain.' }]];
  const doGenerate = async () => ({ content: answers.shift(), finishReason: { unified: 'stop' }, usage, warnings: [] });
  return new MockLanguageModelV3({ modelId: 'mock', doGenerate: doGenerate as never });
}

async function* claudeMessages() {
  const message = { id: 'msg_1', role: 'assistant', model: 'claude', content: [block], usage: {} };
  yield { type: 'assistant', message, parent_tool_use_id: null };
  const content = [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'Rain.' }];
  yield { type: 'user', message: { role: 'user', content }, parent_tool_use_id: null };
  yield { type: 'result', subtype: 'success', result: 'Rain.', is_error: false };
}

/** Stands for a client of Bedrock: a stack of middleware around an answer. */
class BedrockClient {
  readonly config = { serviceId: 'Bedrock Runtime' };
  readonly added = new Map<string, (next: unknown, context: object) => unknown>();
  readonly middlewareStack = {
    add: (middleware: never, { name }: { name: string }) => void this.added.set(name, middleware),
    remove: (name: string) => this.added.delete(name),
  };

  send(): unknown {
    const answer = { output: { message: { role: 'assistant', content: [{ text: 'Rain.' }] } }, $metadata: {} };
    let handler: unknown = async () => ({ output: answer });
    for (const middleware of this.added.values()) handler = middleware(handler, { commandName: 'ConverseCommand' });
    const messages = [{ role: 'user', content: [{ text: 'Cork?' }] }];
    return (handler as (args: object) => unknown)({ input: { modelId: 'claude', messages } });
  }
}

/** Stands for a server of MCP, which registers its tool before the first request. */
class McpServer {
  handler: ((request: object, context: object) => unknown) | undefined;

  setRequestHandler(_: string, handler: McpServer['handler']): void {
    this.handler = handler;
  }

  receive(): unknown {
    if (this.handler === undefined) this.setRequestHandler('tools/call', mcpAnswer);
    return this.handler?.({ method: 'tools/call', params: mcpParams }, {});
  }
}

const mcpAnswer = () => ({ content: [{ type: 'text', text: 'Rain.' }] });
const mcpParams = { name: 'weather', arguments: ASKED };

/** A wrapper, what it returns, an SDK, a call, and the names of the runs of the call, the outermost first. */
type Row = [Wrap, Wrap, 'in place' | 'a copy', () => unknown, (sdk: never) => unknown, ...names: string[]];

const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Cork?' }] }];
const weather = ai.tool({ inputSchema: ai.jsonSchema({ type: 'object' }), execute: async () => 'Rain.' });
const twoSteps = { tools: { weather }, stopWhen: ai.stepCountIs(2), prompt: 'Cork?' };
const claude = () => ({ query: claudeMessages, tool: () => {} });
const mcpClient = () => ({
  callTool: async (_: object) => mcpAnswer(),
  request() {},
  readResource() {},
  getPrompt() {},
});

const rows: Row[] = [
  ...sdks.map(
    ([, sdk]): Row => [
      ...([sdk.wrap, sdk.unwrap, 'in place'] as const),
      async () => sdk.make(await localModel()),
      ...([sdk.create, sdk.runName] as const),
    ],
  ),
  [
    ...([wrapBedrock, unwrapBedrock, 'in place', () => new BedrockClient()] as const),
    (client: BedrockClient) => client.send(),
    'bedrock.converse',
  ],
  [wrapModel, unwrapModel, 'in place', mockModel, (model: MockLanguageModelV3) => model.doGenerate({ prompt }), 'mock'],
  [
    ...([wrapAISDK, unwrapAISDK, 'a copy', () => Object.create({ ...ai })] as const),
    (sdk: typeof ai) => sdk.generateText({ ...twoSteps, model: mockModel() }),
    ...['generateText', 'mock', 'weather', 'mock'],
  ],
  [
    ...([wrapClaudeAgentSDK, unwrapClaudeAgentSDK, 'a copy', claude] as const),
    ({ query }: { query(params: object): AsyncIterable<object> }) => chunksOf(query({ prompt: 'Cork?' })),
    ...['claude-agent', 'anthropic.messages', 'weather'],
  ],
  [
    ...([wrapMCP, unwrapMCP, 'in place', mcpClient] as const),
    (client: ReturnType<typeof mcpClient>) => client.callTool(mcpParams),
    'weather',
  ],
  [wrapMCP, unwrapMCP, 'in place', () => new McpServer(), (server: McpServer) => server.receive(), 'weather'],
];

/** Whether the inputs and the outputs of a run are recorded. */
const shownIn = ({ inputs = {}, outputs = {} }: RunRecord) =>
  [inputs, outputs].map((one) => Object.keys(one).length > 0);

describe.each(rows)('%o', (wrap, unwrap, kind, make, call, ...names) => {
  const recorded = async (options?: object): Promise<readonly RunRecord[]> => {
    const recorder = record();
    await call(wrap((await make()) as never, options) as never);
    recorder.stop();
    return recorder.runs;
  };

  test('traces in place or in a copy, once, until it is unwrapped', async () => {
    const recorder = record();
    const sdk = (await make()) as never;
    const wrapped = wrap(sdk) as never;
    expect(wrapped === sdk ? 'in place' : 'a copy').toBe(kind);
    expect(wrap(wrapped, { tags: ['later'] })).toBe(wrapped);
    await call(wrapped);
    expect(recorder.runs.map(({ name, tags }) => [name, tags])).toEqual(names.map((name) => [name, undefined]));
    expect(unwrap(wrapped)).toBe(sdk);
    expect(unwrap(sdk)).toBe(sdk);
    await call(sdk);
    expect(recorder.runs).toHaveLength(names.length);
    await call(wrap(sdk, { tags: ['again'], hideInputs: true }) as never);
    const again = recorder.runs.slice(names.length);
    expect(again.map((run) => [run.name, run.tags, shownIn(run)[0]])).toEqual(
      names.map((name) => [name, ['again'], false]),
    );
  });

  test('adds tags, metadata and the project to all runs, and names the outermost', async () => {
    const metadata = { team: 'a' };
    const runs = await recorded({ name: 'own', tags: ['t'], metadata, project: 'p', threadId: 'c', userId: 'u' });
    expect(runs.map(({ name }) => name)).toEqual(['own', ...names.slice(1)]);
    for (const run of runs) {
      const known = { ...metadata, thread_id: 'c', user_id: 'u' };
      expect(run).toMatchObject({ tags: ['t'], session_name: 'p', extra: { metadata: known } });
    }
  });

  test.each<[options: object, inputs: boolean, outputs: boolean, lines: number]>([
    [{ hideInputs: true }, false, true, 0],
    [{ hideOutputs: true }, true, false, 0],
    [{ hideInputs: false, hideOutputs: false }, true, true, 0],
    [{ hideInputs: 'yes', hideOutputs: null }, false, false, 2],
    [{ processInputs: () => ({}), mask: () => {} }, false, false, 2],
  ])('hides the payloads of all runs with %o', async (options, inputs, outputs, count) => {
    const lines = logLines('warn');
    const runs = await recorded(options);
    expect(runs).toHaveLength(names.length);
    for (const run of runs) expect([run.name, ...shownIn(run)]).toEqual([run.name, inputs, outputs]);
    expect(lines).toHaveLength(count);
  });

  test('sends all runs to its exporter, which still hides what it hides', async () => {
    const hidden = record({ hideInputs: true, hideOutputs: true });
    expect(await recorded({ exporter: hidden.exporter, hideInputs: false, hideOutputs: false })).toEqual([]);
    expect(hidden.runs.map(shownIn)).toEqual(names.map(() => [false, false]));
  });

  test('returns its argument and records nothing if it is not enabled', async () => {
    const recorder = record();
    const sdk = (await make()) as never;
    expect(wrap(sdk, { enabled: false })).toBe(sdk);
    await call(sdk);
    expect(recorder.runs).toEqual([]);
  });

  test('logs and ignores unknown and invalid options', async () => {
    const lines = logLines('warn');
    expect(await recorded({ colour: 'red', tags: 1, name: '' })).toHaveLength(names.length);
    expect(await recorded([])).toHaveLength(names.length);
    expect(await recorded({ mask: true })).toHaveLength(names.length);
    expect(lines).toEqual([
      `warn: ${wrap.name}: unknown option \`colour\` is ignored.`,
      `warn: ${wrap.name}: expected \`tags\` to be a list of at most 1000 strings; the option is ignored.`,
      `warn: ${wrap.name}: expected \`name\` to be a non-empty string; the option is ignored.`,
      `warn: ${wrap.name}: expected the options to be an object, got a list; the options are ignored.`,
      `warn: ${wrap.name}: unknown option \`mask\` hides what it hides in other libraries; use \`hideInputs\` or \`hideOutputs\`.`,
    ]);
  });
});

test('`wrapModel` replaces the tracing that a function of `wrapAISDK` has added to a model', async () => {
  const recorder = record();
  const model = mockModel();
  await wrapAISDK({ ...ai }).generateText({ ...twoSteps, model });
  await wrapModel(model, { hideInputs: true }).doGenerate({ prompt });
  expect(recorder.runs.map((run) => shownIn(run)[0])).toEqual([true, true, true, true, false]);
});

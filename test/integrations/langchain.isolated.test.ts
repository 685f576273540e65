import { dispatchCustomEvent } from '@langchain/core/callbacks/dispatch';
import { Document } from '@langchain/core/documents';
import { ModelAbortError } from '@langchain/core/errors';
import { AIMessage, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { StringOutputParser } from '@langchain/core/output_parsers';
import { ChatPromptTemplate, PromptTemplate } from '@langchain/core/prompts';
import { BaseRetriever } from '@langchain/core/retrievers';
import { RunnableLambda, RunnableParallel, RunnableSequence } from '@langchain/core/runnables';
import { tool } from '@langchain/core/tools';
import { FakeListChatModel, FakeLLM, FakeStreamingChatModel } from '@langchain/core/utils/testing';
import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { RunspanCallbackHandler } from '#src/langchain.ts';
import type { RunRecord } from '#src/run/record.ts';
import { record, treeOf } from '../instrument/recorder.ts';
import { makeSink } from '../run/memory-sink.ts';
import { environmentOf } from '../support/environment.ts';
import { logLines } from '../support/log-lines.ts';

const callbacks = [new RunspanCallbackHandler()];

const poet = ChatPromptTemplate.fromMessages([
  ['system', 'You are {mood}.'],
  ['human', 'Hello'],
])
  .pipe(new FakeListChatModel({ responses: ['Good day'] }))
  .pipe(new StringOutputParser());

class Library extends BaseRetriever {
  lc_namespace = ['test'];

  static override lc_name(): string {
    return 'Library';
  }

  override async _getRelevantDocuments(query: string): Promise<Document[]> {
    if (query === '') throw new RangeError('nothing asked');
    return [new Document({ pageContent: `On ${query}`, metadata: { page: 3 }, id: 'd1' })];
  }
}

const add = tool(async ({ a, b }: { a: number; b: number }) => `${a + b}`, {
  name: 'add',
  description: 'adds',
  schema: z.object({ a: z.number(), b: z.number() }),
});
const shout = tool((text: string) => text.toUpperCase(), { name: 'shout', schema: z.string() });
const error = new TypeError('no');
const broken = tool(
  () => {
    throw error;
  },
  { name: 'broken', schema: z.object({}) },
);
const addCall = { type: 'tool_call' as const, id: 'call_1', name: 'add', args: { a: 1, b: 2 } };
const system = { role: 'system', content: 'You are kind.' };
const user = { role: 'user', content: 'Hello' };
const answer = { role: 'assistant', content: 'Good day', id: expect.any(String) };
const failing = new FakeStreamingChatModel({ thrownErrorString: 'overloaded' });

type Config = { callbacks: RunspanCallbackHandler[]; runName: string };
type Expected = Partial<Omit<RunRecord, 'outputs'>> & { outputs?: object };

test.each<[string, (config: Config) => Promise<unknown>, result: unknown, runs: Expected[]]>([
  [
    'a sequence',
    (config) => poet.invoke({ mood: 'kind' }, { ...config, metadata: { user: 'ada' }, tags: ['shop'] }),
    'Good day',
    [
      {
        name: 'step',
        run_type: 'chain',
        inputs: { mood: 'kind' },
        outputs: { output: 'Good day' },
        tags: ['shop'],
        extra: { metadata: { user: 'ada' } },
      },
      {
        name: 'ChatPromptTemplate',
        run_type: 'prompt',
        inputs: { mood: 'kind' },
        outputs: { messages: [system, user] },
        tags: ['seq:step:1', 'shop'],
      },
      {
        name: 'FakeListChatModel',
        run_type: 'llm',
        inputs: { messages: [system, user] },
        outputs: { messages: [answer] },
        tags: ['seq:step:2', 'shop'],
        extra: { metadata: { user: 'ada', ls_provider: 'FakeListChatModel', ls_model_type: 'chat' } },
      },
      {
        name: 'StrOutputParser',
        run_type: 'parser',
        inputs: { input: answer },
        outputs: { output: 'Good day' },
        tags: ['seq:step:3', 'shop'],
      },
    ],
  ],
  [
    'a map',
    (config) => {
      const plus = (n: number, runName: string) => RunnableLambda.from((x: number) => x + n).withConfig({ runName });
      return RunnableParallel.from({ a: plus(1, 'a'), b: plus(2, 'b') }).invoke(1, config);
    },
    { a: 2, b: 3 },
    [
      { inputs: { input: 1 }, outputs: { a: 2, b: 3 } },
      { name: 'a', tags: ['map:key:a'] },
      { name: 'b', tags: ['map:key:b'] },
    ],
  ],
  [
    'a tool',
    (config) => add.invoke({ a: 1, b: 2 }, config),
    '3',
    [{ run_type: 'tool', inputs: { a: 1, b: 2 }, outputs: { output: '3' } }],
  ],
  [
    'a tool that a model calls',
    (config) => add.invoke(addCall, config),
    expect.any(ToolMessage),
    [
      {
        inputs: { a: 1, b: 2 },
        outputs: { output: { role: 'tool', name: 'add', tool_call_id: 'call_1', content: '3' } },
        extra: { metadata: { tool_call_id: 'call_1' } },
      },
    ],
  ],
  ['a tool of text', (config) => shout.invoke('{hey', config), '{HEY', [{ outputs: { output: '{HEY' } }]],
  [
    'a tool that throws',
    (config) => broken.invoke({}, config).catch((thrown) => thrown),
    error,
    [{ error: expect.stringMatching(/^TypeError: no\n\s+at .*\.test\.ts/) }],
  ],
  [
    'a retriever',
    (config) => new Library().invoke('tea', config),
    expect.any(Array),
    [
      {
        run_type: 'retriever',
        inputs: { query: 'tea' },
        outputs: { documents: [{ page_content: 'On tea', type: 'Document', metadata: { page: 3 }, id: 'd1' }] },
      },
    ],
  ],
  [
    'a retriever that throws',
    (config) => new Library().invoke('', config).catch(String),
    'RangeError: nothing asked',
    [{ error: expect.stringMatching(/^RangeError: nothing asked\n/) }],
  ],
  [
    'a model without messages',
    (config) =>
      PromptTemplate.fromTemplate('Say {what}')
        .pipe(new FakeLLM({ response: 'ok' }))
        .invoke({ what: 'ok' }, config),
    'ok',
    [
      {},
      { run_type: 'prompt', outputs: { output: 'Say ok' } },
      { name: 'FakeLLM', run_type: 'llm', inputs: { prompt: 'Say ok' }, outputs: { text: 'ok' } },
    ],
  ],
  [
    'a model that throws',
    (config) => ChatPromptTemplate.fromTemplate('hi').pipe(failing).invoke({}, config).catch(String),
    'Error: overloaded',
    [
      { error: expect.stringMatching(/^Error: overloaded\n/) },
      { name: 'ChatPromptTemplate' },
      { name: 'FakeStreamingChatModel', error: expect.stringMatching(/^Error: overloaded\n/) },
    ],
  ],
  [
    'events of the application',
    (config) =>
      RunnableLambda.from(async (_: string, inner) => {
        await dispatchCustomEvent('progress', { done: 1 }, inner);
        await dispatchCustomEvent('note', 'half way', inner);
        return 1;
      }).invoke('x', config),
    1,
    [
      {
        events: [
          { name: 'progress', kwargs: { done: 1 } },
          { name: 'note', kwargs: { data: 'half way' } },
        ] as never,
      },
    ],
  ],
])('%s is recorded', async (_, call, result, expected) => {
  const recorder = record();
  expect(await call({ callbacks, runName: 'step' })).toEqual(result);
  expect(recorder.runs).toMatchObject(expected.map((run) => ({ ...run, end_time: expect.any(String) })));
  const failed = recorder.runs.map(({ error }) => error !== undefined);
  expect(failed).toEqual(expected.map((run) => run.error !== undefined));
  expect(JSON.stringify(recorder.runs)).not.toContain('langchain_core');
});

// `raceWithSignal` and the model classes of LangChain throw these errors instead of the reason of the signal.
test.each([
  ['a plain error of the core', new Error('Aborted'), 'cancelled'],
  ['a plain error of a model class', new Error('AbortError'), 'cancelled'],
  ['the error class of the core', new ModelAbortError('stopped', undefined), 'cancelled'],
  ['an error of the application', new Error('Aborted by the bank'), undefined],
  ['an error of the application with the message of LangGraph', new Error('Abort'), undefined],
])('a step that throws %s fails', async (_, thrown, reason) => {
  const recorder = record();
  const step = RunnableLambda.from(async () => {
    throw thrown;
  });
  await expect(step.invoke('x', { callbacks })).rejects.toBe(thrown);
  expect(recorder.runs[0]?.error).toContain(thrown.message);
  expect(recorder.runs[0]?.extra?.runspan_end_reason).toBe(reason);
});

describe('a chain', () => {
  test('that is streamed has the inputs and outputs of the whole, and one event for the first token', async () => {
    const recorder = record();
    const model = new FakeStreamingChatModel({ responses: [new AIMessage('one two three')] });
    const lines = RunnableLambda.from(() => [new HumanMessage('count')]);
    const chain = RunnableSequence.from([lines, model, new StringOutputParser()]);
    const chunks: string[] = [];
    for await (const chunk of await chain.stream('go', { callbacks })) chunks.push(chunk);
    expect(chunks.join('')).toBe('one two three');
    const counted = { role: 'assistant', content: 'one two three' };
    expect(recorder.runs).toMatchObject([
      { inputs: { input: 'go' }, outputs: { output: 'one two three' } },
      { inputs: { input: 'go' }, outputs: { output: [{ role: 'user', content: 'count' }] } },
      { outputs: { messages: [counted] }, events: [{ name: 'new_token' }] },
      { inputs: { input: counted }, outputs: { output: 'one two three' } },
    ]);
    expect(recorder.runs[2]?.events).toHaveLength(1);
    expect(recorder.runs[2]?.events?.[0]).not.toHaveProperty('kwargs');
  });

  test('is recorded once if its events are streamed', async () => {
    const recorder = record();
    const stream = poet.streamEvents({ mood: 'kind' }, { version: 'v2', callbacks, runName: 'poet' });
    const ids = new Set<string>();
    for await (const event of stream) ids.add(event.run_id);
    expect(treeOf(recorder.runs)).toEqual({
      poet: { ChatPromptTemplate: {}, FakeListChatModel: {}, StrOutputParser: {} },
    });
    expect(new Set(recorder.runs.map(({ id }) => id))).toEqual(ids);
  });

  test('is one trace for each input of a batch', async () => {
    const recorder = record();
    const double = RunnableLambda.from(async (n: number) => n * 2).withConfig({ runName: 'double' });
    const half = RunnableLambda.from(async (n: number) => n / 2).withConfig({ runName: 'half' });
    const numbers = Array.from({ length: 30 }, (_, n) => n);
    expect(await double.pipe(half).batch(numbers, { callbacks, maxConcurrency: 7 })).toEqual(numbers);
    const roots = recorder.runs.filter(({ parent_run_id }) => parent_run_id === undefined);
    expect(roots.map(({ inputs }) => inputs.input).sort((a, b) => Number(a) - Number(b))).toEqual(numbers);
    for (const { id, inputs } of roots) {
      const n = inputs.input as number;
      expect(recorder.runs.filter(({ parent_run_id }) => parent_run_id === id)).toMatchObject([
        { name: 'double', inputs: { input: n }, trace_id: id },
        { name: 'half', inputs: { input: n * 2 }, trace_id: id },
      ]);
    }
  });

  test('with retries and a fallback has a run for each attempt', async () => {
    const recorder = record();
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    let calls = 0;
    const flaky = RunnableLambda.from(() => {
      if (++calls < 3) throw new Error(`try ${calls}`);
      return 'done';
    }).withRetry({ stopAfterAttempt: 3 });
    const dead = RunnableLambda.from((): string => {
      throw new Error('dead');
    }).withFallbacks({ fallbacks: [flaky] });
    const answer = dead.invoke('x', { callbacks, runName: 'all' });
    await vi.runAllTimersAsync();
    expect(await answer).toBe('done');

    const [all, first, retried, ...tries] = recorder.runs;
    expect([all?.outputs, first?.error?.split('\n')[0], retried?.outputs]).toEqual([
      { output: 'done' },
      'Error: dead',
      { output: 'done' },
    ]);
    expect(tries.map(({ error, tags, parent_run_id }) => [error?.split('\n')[0], tags, parent_run_id])).toEqual([
      ['Error: try 1', [], retried?.id],
      ['Error: try 2', ['retry:attempt:2'], retried?.id],
      [undefined, ['retry:attempt:3'], retried?.id],
    ]);
  });
});

test('a graph that waits for input has its interrupts and an event', () => {
  const recorder = record();
  const handler = new RunspanCallbackHandler();
  // LangGraph reports interrupts to handlers with this property.
  expect(Reflect.get(handler, Symbol.for('langgraph.graph_callback_handler'))).toBe(true);
  const [graph, other] = ['01a1fd2b-5bb1-73bc-99e8-03d278e3a270', '01a1fd2b-5bb1-73bc-99e8-03d278e3a271'];
  for (const id of [graph, other]) handler.handleChainStart({}, { text: '' }, id);
  handler.handleInterrupt({ runId: graph, interrupts: [{ id: 'i1', value: new HumanMessage('Who?') }] });
  handler.handleInterrupt({ runId: undefined, interrupts: [{ id: 'i2' }] });
  for (const id of [graph, other]) handler.handleChainEnd({ text: '' }, id);
  const asked = [{ id: 'i1', value: { role: 'user', content: 'Who?' } }];
  expect(recorder.runs.map(({ outputs }) => outputs)).toEqual([{ text: '', __interrupt__: asked }, { text: '' }]);
  const events = recorder.runs.map((run) => (run.events ?? []).map(({ name }) => name));
  expect(events).toEqual([['GraphInterrupt'], []]);
});

test.each([
  ['019283ab-0000-7000-8000-0123456789ab', '019283ab-0000-7000-8000-0123456789ab'],
  ['order-7', expect.stringMatching(/^[0-9a-f-]{36}$/)],
])('the run of a call with the run id %s keeps the id if it is a UUID', async (runId, id) => {
  const recorder = record();
  const step = RunnableLambda.from((_: string, config) => RunnableLambda.from(() => 1).invoke('y', config));
  await step.invoke('x', { callbacks, runId });
  expect(recorder.runs).toMatchObject([{ id }, { parent_run_id: recorder.runs[0]?.id }]);
  expect(recorder.runs.every(({ end_time }) => end_time !== undefined)).toBe(true);
});

describe("LangChain's own tracer", () => {
  const url = 'http://127.0.0.1:9';
  const ours = { RUNSPAN_ENDPOINT: url };
  const defaultEndpoint = { RUNSPAN_ENDPOINT: 'https://api.smith.langchain.com/' };

  test.each<[variable: string, value: string, Record<string, string>, isReported: boolean]>([
    ['LANGSMITH_TRACING', 'true', { LANGSMITH_ENDPOINT: url }, true],
    ['LANGCHAIN_TRACING_V2', 'true', { LANGSMITH_ENDPOINT: url }, true],
    ['LANGSMITH_TRACING', 'true', { LANGSMITH_ENDPOINT: url, ...ours }, true],
    ['LANGSMITH_TRACING_V2', 'true', { LANGSMITH_ENDPOINT: url, ...ours }, true],
    ['LANGCHAIN_TRACING', 'true', { LANGCHAIN_ENDPOINT: url, ...ours }, true],
    ['LANGSMITH_TRACING', 'true', defaultEndpoint, true],
    ['LANGSMITH_TRACING', 'false', { LANGSMITH_ENDPOINT: url, ...ours }, false],
    ['LANGSMITH_TRACING', 'true', { LANGSMITH_ENDPOINT: `${url}1`, ...ours }, false],
    ['LANGSMITH_TRACING', 'true', ours, false],
  ])('by %s=%s and %j sends the same steps and is reported: %s', async (variable, value, endpoints, isReported) => {
    environmentOf({ LANGSMITH_API_KEY: 'none', [variable]: value, ...endpoints });
    const runId = '019283ab-0000-7000-8000-0123456789ab';
    const lines = logLines();
    const recorder = record();
    for (let time = 0; time < 2; time++) {
      const handler = new RunspanCallbackHandler();
      // LangChain's own tracer would send a real step.
      handler.handleChainStart({}, {}, runId);
      handler.handleChainEnd({}, runId);
    }
    // The runs get other ids, because two records with one id would overwrite each other.
    expect(recorder.runs.map(({ id }) => id === runId)).toEqual([!isReported, !isReported]);
    const line = expect.stringMatching(new RegExp(`^warn: .*${variable} is "true".* recorded twice`));
    expect(lines).toEqual(isReported ? [line] : []);
  });
});

describe('the options of a handler', () => {
  test('apply to every run, and the name to the outermost', async () => {
    const recorder = record();
    const sink = makeSink();
    const handler = new RunspanCallbackHandler({
      ...{ name: 'own', hideInputs: true, tags: ['beta', 'shop'] },
      metadata: { team: 'a', user: 'none' },
      project: 'cards',
      exporter: sink,
    });
    await poet.invoke({ mood: 'kind' }, { callbacks: [handler], tags: ['shop'], metadata: { user: 'ada' } });

    expect(recorder.runs).toEqual([]);
    expect(sink.records().map(({ name }) => name === 'own')).toEqual([true, false, false, false]);
    for (const run of sink.records()) {
      expect([run.session_name, run.inputs]).toEqual(['cards', {}]);
      expect(run.tags?.filter((tag) => !tag.startsWith('seq'))).toEqual(['beta', 'shop']);
      expect(run.extra?.metadata).toMatchObject({ team: 'a', user: 'none' });
    }
  });

  test('are checked, and a wrong option is reported once', async () => {
    const lines = logLines();
    const recorder = record();
    await poet.invoke({ mood: 'kind' }, { callbacks: [new RunspanCallbackHandler({ enabled: false })] });
    expect(recorder.runs).toEqual([]);
    // @ts-expect-error -- an unknown option
    new RunspanCallbackHandler({ tags: ['a'], colour: 'red' });
    // @ts-expect-error -- not text
    new RunspanCallbackHandler({ project: 7 });
    expect(lines).toEqual([
      'warn: RunspanCallbackHandler: unknown option `colour` is ignored.',
      "warn: RunspanCallbackHandler: expected `project` to be a project's name, or an object with its `id`; the option is ignored.",
    ]);
  });
});

describe('several handlers', () => {
  test('with one exporter record a step once', async () => {
    const recorder = record();
    const model = new FakeListChatModel({ responses: ['hi'], callbacks: [new RunspanCallbackHandler()] });
    const both = [...callbacks, ...callbacks, new RunspanCallbackHandler()];
    await ChatPromptTemplate.fromTemplate('x').pipe(model).invoke({}, { callbacks: both, runName: 'chain' });
    expect(recorder.runs.map(({ name }) => name)).toEqual(['chain', 'ChatPromptTemplate', 'FakeListChatModel']);
    expect(recorder.runs.every(({ end_time }) => end_time !== undefined)).toBe(true);
  });

  test('with several exporters each record the whole tree', async () => {
    const sinks = [makeSink(), makeSink()];
    const handlers = sinks.map((exporter) => new RunspanCallbackHandler({ exporter }));
    await poet.invoke({ mood: 'kind' }, { callbacks: handlers, runName: 'poet' });
    for (const sink of sinks) {
      expect(treeOf(sink.records())).toEqual({
        poet: { ChatPromptTemplate: {}, FakeListChatModel: {}, StrOutputParser: {} },
      });
      expect(sink.ended).toHaveLength(4);
    }
  });
});

describe('a value that cannot be recorded', () => {
  test('changes neither the call nor the end of its run', async () => {
    const recorder = record();
    const lines = logLines();
    const hostile = {
      get trap(): never {
        throw new Error('trap');
      },
    };
    const step = RunnableLambda.from(() => hostile);
    expect(await step.invoke(hostile, { callbacks })).toBe(hostile);
    expect(recorder.runs).toHaveLength(1);
    expect(recorder.runs[0]?.end_time).toBeDefined();
    expect(recorder.runs[0]?.error).toBeUndefined();
    expect(lines).toEqual([]);
  });

  test('is not recorded if inputs and outputs are hidden', async () => {
    const sink = makeSink({ hideInputs: true, hideOutputs: true });
    await poet.invoke({ mood: 'kind' }, { callbacks: [new RunspanCallbackHandler({ exporter: sink })] });
    expect(sink.started.map(({ inputs, outputs }) => [inputs, outputs])).toEqual(
      Array.from({ length: 4 }, () => [undefined, undefined]),
    );
    expect(JSON.stringify(sink.records())).not.toMatch(/Good day|kind/);
  });

  test('is ignored if the step is unknown', () => {
    const lines = logLines();
    const recorder = record();
    const [handler] = callbacks as [RunspanCallbackHandler];
    handler.handleChainEnd({}, 'unknown');
    handler.handleLLMError(new Error('x'), 'unknown');
    handler.handleLLMNewToken('a', {}, 'unknown');
    handler.handleCustomEvent('a', {}, 'unknown');
    expect(recorder.runs).toEqual([]);
    expect(lines).toEqual([]);
  });
});

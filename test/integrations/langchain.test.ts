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
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { z } from 'zod';
import { RunspanCallbackHandler, type RunspanCallbackHandlerOptions } from '../../src/langchain.ts';
import type { RunRecord } from '../../src/run/record.ts';
import { record, treeOf } from '../instrument/recorder.ts';
import { makeSink } from '../run/memory-sink.ts';
import { environmentOf } from '../support/environment.ts';
import { told } from '../support/told.ts';

const callbacks = [new RunspanCallbackHandler()];

/** A sequence of all that a chain usually has. */
const poet = ChatPromptTemplate.fromMessages([
  ['system', 'You are {mood}.'],
  ['human', 'Hello'],
])
  .pipe(new FakeListChatModel({ responses: ['Good day'] }))
  .pipe(new StringOutputParser());

const named = (runs: readonly RunRecord[], name: string): RunRecord => {
  const [run] = runs.filter((one) => one.name === name);
  if (run === undefined) throw new Error(`no run ${name} among ${runs.map((one) => one.name)}`);
  return run;
};

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

describe('a sequence', () => {
  it('is a run with one below it for each step, of its type, with what went in and came out', async () => {
    const recorder = record();
    expect(await poet.invoke({ mood: 'kind' }, { callbacks, runName: 'poet' })).toBe('Good day');

    expect(treeOf(recorder.runs)).toEqual({
      poet: { ChatPromptTemplate: {}, FakeListChatModel: {}, StrOutputParser: {} },
    });
    const asked = [
      { role: 'system', content: 'You are kind.' },
      { role: 'user', content: 'Hello' },
    ];
    const answer = { role: 'assistant', content: 'Good day', id: expect.any(String) };
    expect(recorder.runs).toMatchObject([
      { run_type: 'chain', inputs: { mood: 'kind' }, outputs: { output: 'Good day' } },
      { run_type: 'prompt', inputs: { mood: 'kind' }, outputs: { messages: asked }, tags: ['seq:step:1'] },
      { run_type: 'llm', inputs: { messages: asked }, outputs: { messages: [answer] }, tags: ['seq:step:2'] },
      { run_type: 'parser', inputs: { input: answer }, outputs: { output: 'Good day' }, tags: ['seq:step:3'] },
    ]);
    expect(recorder.runs.every(({ end_time, error }) => end_time !== undefined && error === undefined)).toBe(true);
    expect(JSON.stringify(recorder.runs)).not.toContain('langchain_core');
  });

  it('tells the metadata of LangChain and of the call', async () => {
    const recorder = record();
    await poet.invoke({ mood: 'kind' }, { callbacks, metadata: { user: 'ada' }, tags: ['shop'], runName: 'poet' });

    expect(named(recorder.runs, 'poet')).toMatchObject({ tags: ['shop'], extra: { metadata: { user: 'ada' } } });
    expect(named(recorder.runs, 'FakeListChatModel')).toMatchObject({
      tags: ['seq:step:2', 'shop'],
      extra: { metadata: { user: 'ada', ls_provider: 'FakeListChatModel', ls_model_type: 'chat' } },
    });
  });

  it('that is streamed has the inputs and outputs of the whole, and one event for the first token', async () => {
    const recorder = record();
    const model = new FakeStreamingChatModel({ responses: [new AIMessage('one two three')] });
    const lines = RunnableLambda.from(() => [new HumanMessage('count')]);
    const chain = RunnableSequence.from([lines, model, new StringOutputParser()]);
    const chunks: string[] = [];
    for await (const chunk of await chain.stream('go', { callbacks, runName: 'count' })) chunks.push(chunk);

    expect(chunks.join('')).toBe('one two three');
    const [chain_, lambda, llm, parser] = recorder.runs;
    expect(chain_).toMatchObject({ inputs: { input: 'go' }, outputs: { output: 'one two three' } });
    expect(lambda).toMatchObject({
      inputs: { input: 'go' },
      outputs: { output: [{ role: 'user', content: 'count' }] },
    });
    expect(llm?.outputs).toMatchObject({ messages: [{ role: 'assistant', content: 'one two three' }] });
    expect(llm?.events?.map(({ name, kwargs }) => [name, kwargs])).toEqual([['new_token', undefined]]);
    expect(parser).toMatchObject({
      inputs: { input: { role: 'assistant', content: 'one two three' } },
      outputs: { output: 'one two three' },
    });
  });

  it('is recorded once when its events are streamed', async () => {
    const recorder = record();
    const stream = poet.streamEvents({ mood: 'kind' }, { version: 'v2', callbacks, runName: 'poet' });
    const ids = new Set<string>();
    for await (const event of stream) ids.add(event.run_id);

    expect(treeOf(recorder.runs)).toEqual({
      poet: { ChatPromptTemplate: {}, FakeListChatModel: {}, StrOutputParser: {} },
    });
    expect(new Set(recorder.runs.map(({ id }) => id))).toEqual(ids);
  });
});

describe('steps side by side', () => {
  it('of a map are below it', async () => {
    const recorder = record();
    const map = RunnableParallel.from({
      a: RunnableLambda.from((n: number) => n + 1).withConfig({ runName: 'a' }),
      b: RunnableLambda.from((n: number) => n + 2).withConfig({ runName: 'b' }),
    });
    await map.invoke(1, { callbacks, runName: 'map' });

    expect(treeOf(recorder.runs)).toEqual({ map: { a: {}, b: {} } });
    expect(named(recorder.runs, 'map')).toMatchObject({ inputs: { input: 1 }, outputs: { a: 2, b: 3 } });
    expect(named(recorder.runs, 'b').tags).toEqual(['map:key:b']);
  });

  it('of a batch are traces of their own, each with its own steps, however many run at once', async () => {
    const recorder = record();
    const double = RunnableLambda.from(async (n: number) => n * 2).withConfig({ runName: 'double' });
    const half = RunnableLambda.from(async (n: number) => n / 2).withConfig({ runName: 'half' });
    const numbers = Array.from({ length: 30 }, (_, n) => n);
    const batched = await double.pipe(half).batch(numbers, { callbacks, maxConcurrency: 7, runName: 'same' });

    expect(batched).toEqual(numbers);
    const roots = recorder.runs.filter(({ parent_run_id }) => parent_run_id === undefined);
    expect(roots.map(({ inputs }) => inputs.input).sort((a, b) => Number(a) - Number(b))).toEqual(numbers);
    for (const root of roots) {
      const steps = recorder.runs.filter(({ parent_run_id }) => parent_run_id === root.id);
      const n = root.inputs.input as number;
      expect(steps.map(({ name, inputs }) => [name, inputs.input])).toEqual([
        ['double', n],
        ['half', n * 2],
      ]);
      expect(steps.every((step) => step.trace_id === root.id)).toBe(true);
    }
  });

  it('are tried again and replaced as LangChain does it, each time as a run', async () => {
    const recorder = record();
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
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

describe('a tool', () => {
  const add = tool(async ({ a, b }: { a: number; b: number }) => `${a + b}`, {
    name: 'add',
    description: 'adds',
    schema: z.object({ a: z.number(), b: z.number() }),
  });

  it('has its arguments as inputs', async () => {
    const recorder = record();
    expect(await add.invoke({ a: 1, b: 2 }, { callbacks })).toBe('3');
    expect(recorder.runs).toMatchObject([
      { name: 'add', run_type: 'tool', inputs: { a: 1, b: 2 }, outputs: { output: '3' } },
    ]);
  });

  it('that a model calls has the id of the call, and a message as output', async () => {
    const recorder = record();
    const call = { type: 'tool_call' as const, id: 'call_1', name: 'add', args: { a: 1, b: 2 } };
    expect(await add.invoke(call, { callbacks })).toBeInstanceOf(ToolMessage);
    expect(recorder.runs).toMatchObject([
      {
        inputs: { a: 1, b: 2 },
        outputs: { output: { role: 'tool', name: 'add', tool_call_id: 'call_1', content: '3' } },
        extra: { metadata: { tool_call_id: 'call_1' } },
      },
    ]);
  });

  it('of text has it as `input`', async () => {
    const recorder = record();
    const shout = tool((text: string) => text.toUpperCase(), { name: 'shout', schema: z.string() });
    expect(await shout.invoke('{hey', { callbacks })).toBe('{HEY');
    expect(recorder.runs).toMatchObject([{ name: 'shout', outputs: { output: '{HEY' } }]);
    expect(JSON.stringify(recorder.runs[0]?.inputs)).toContain('{hey');
  });

  it('that throws fails with the error and its stack, and throws the same', async () => {
    const recorder = record();
    const error = new TypeError('no');
    const broken = tool(
      () => {
        throw error;
      },
      { name: 'broken', schema: z.object({}) },
    );
    await expect(broken.invoke({}, { callbacks })).rejects.toBe(error);
    const [run] = recorder.runs;
    expect(run?.error).toMatch(/^TypeError: no\n\s+at .*langchain\.test\.ts/);
    expect(run?.end_time).toBeDefined();
  });
});

describe('a retriever', () => {
  it('has the query and the documents', async () => {
    const recorder = record();
    await new Library().invoke('tea', { callbacks });
    expect(recorder.runs).toMatchObject([{ name: 'Library', run_type: 'retriever', inputs: { query: 'tea' } }]);
    expect(recorder.runs[0]?.outputs).toEqual({
      documents: [{ page_content: 'On tea', type: 'Document', metadata: { page: 3 }, id: 'd1' }],
    });
  });

  it('that throws fails', async () => {
    const recorder = record();
    await expect(new Library().invoke('', { callbacks })).rejects.toThrow('nothing asked');
    expect(recorder.runs[0]?.error).toMatch(/^RangeError: nothing asked\n/);
  });
});

describe('a model', () => {
  it('without messages has the prompt and the text', async () => {
    const recorder = record();
    const chain = PromptTemplate.fromTemplate('Say {what}').pipe(new FakeLLM({ response: 'ok' }));
    expect(await chain.invoke({ what: 'ok' }, { callbacks })).toBe('ok');
    expect(recorder.runs.slice(1)).toMatchObject([
      { run_type: 'prompt', outputs: { output: 'Say ok' } },
      { name: 'FakeLLM', run_type: 'llm', inputs: { prompt: 'Say ok' }, outputs: { text: 'ok' } },
    ]);
  });

  it('that throws fails, and so does the chain around it', async () => {
    const recorder = record();
    const model = new FakeStreamingChatModel({ thrownErrorString: 'overloaded' });
    const chain = ChatPromptTemplate.fromTemplate('hi').pipe(model);
    await expect(chain.invoke({}, { callbacks, runName: 'chain' })).rejects.toThrow('overloaded');
    expect(named(recorder.runs, 'chain').error).toMatch(/^Error: overloaded\n/);
    expect(named(recorder.runs, 'FakeStreamingChatModel').error).toMatch(/^Error: overloaded\n/);
  });
});

describe('a step that was called off', () => {
  // What `raceWithSignal` and the model classes of LangChain throw, beside the reason of the signal itself.
  it.each([
    ['a plain error of the core', new Error('Aborted'), 'cancelled'],
    ['a plain error of a model class', new Error('AbortError'), 'cancelled'],
    ['the error class of the core', new ModelAbortError('stopped', undefined), 'cancelled'],
    ['an error of the application', new Error('Aborted by the bank'), undefined],
  ])('with %s fails, and says how it ended', async (_, error, reason) => {
    const recorder = record();
    const step = RunnableLambda.from(async () => {
      throw error;
    });
    await expect(step.invoke('x', { callbacks })).rejects.toBe(error);
    expect(recorder.runs[0]?.error).toContain(error.message);
    expect(recorder.runs[0]?.extra?.metadata?.end_reason).toBe(reason);
  });
});

describe('events of the application', () => {
  it('are events of the run that they are sent in', async () => {
    const recorder = record();
    const step = RunnableLambda.from(async (_: string, config) => {
      await dispatchCustomEvent('progress', { done: 1 }, config);
      await dispatchCustomEvent('note', 'half way', config);
      return 1;
    });
    await step.invoke('x', { callbacks });
    expect(recorder.runs[0]?.events?.map(({ name, kwargs }) => [name, kwargs])).toEqual([
      ['progress', { done: 1 }],
      ['note', { data: 'half way' }],
    ]);
  });
});

describe('a graph that LangGraph says to wait for somebody', () => {
  it('has what it waits for beside its state, and an event', () => {
    const recorder = record();
    const handler = new RunspanCallbackHandler();
    // Whom LangGraph tells it finds out by this.
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
});

describe('the id of a run', () => {
  it('is the one that the call was given, so that it can be found again', async () => {
    const recorder = record();
    const runId = '019283ab-0000-7000-8000-0123456789ab';
    await RunnableLambda.from(() => 1).invoke('x', { callbacks, runId });
    expect(recorder.runs.map(({ id }) => id)).toEqual([runId]);
  });

  it('is one of ours where LangChain was given one that is no UUID', async () => {
    const recorder = record();
    const step = RunnableLambda.from((_: string, config) => RunnableLambda.from(() => 1).invoke('y', config));
    await step.invoke('x', { callbacks, runId: 'order-7' });
    expect(recorder.runs).toHaveLength(2);
    expect(recorder.runs[0]?.id).toMatch(/^[0-9a-f-]{36}$/);
    expect(recorder.runs[1]?.parent_run_id).toBe(recorder.runs[0]?.id);
    expect(recorder.runs.every(({ end_time }) => end_time !== undefined)).toBe(true);
  });
});

describe("LangChain's own tracer", () => {
  const runId = '019283ab-0000-7000-8000-0123456789ab';
  const idsIn = async (variables: Record<string, string>, options: RunspanCallbackHandlerOptions = {}) => {
    environmentOf({ LANGSMITH_API_KEY: 'none', ...variables });
    const recorder = record();
    const handler = new RunspanCallbackHandler(options);
    // No step of LangChain's: its tracer would send it.
    handler.handleChainStart({}, {}, runId);
    handler.handleChainEnd({}, runId);
    return recorder.runs.map(({ id }) => id);
  };
  const url = 'http://127.0.0.1:9';

  it.each<[string, Record<string, string>]>([
    ['to the endpoint of both', { LANGSMITH_TRACING: 'true', LANGSMITH_ENDPOINT: url }],
    ['to the endpoint of both by an older name', { LANGCHAIN_TRACING_V2: 'true', LANGSMITH_ENDPOINT: url }],
    ['to ours', { LANGSMITH_TRACING: 'true', LANGSMITH_ENDPOINT: url, RUNSPAN_ENDPOINT: url }],
    ['by an older name', { LANGSMITH_TRACING_V2: 'true', LANGSMITH_ENDPOINT: url, RUNSPAN_ENDPOINT: url }],
    ['by older names', { LANGCHAIN_TRACING_V2: 'true', LANGCHAIN_ENDPOINT: url, RUNSPAN_ENDPOINT: url }],
    ['by the oldest name', { LANGCHAIN_TRACING: 'true', LANGCHAIN_ENDPOINT: url, RUNSPAN_ENDPOINT: url }],
    [
      'to where it sends them by itself',
      { LANGSMITH_TRACING: 'true', RUNSPAN_ENDPOINT: 'https://api.smith.langchain.com/' },
    ],
  ])('that sends the same steps %s is told of, and ids are ours', async (_, variables) => {
    const lines = told();
    expect(await idsIn(variables)).toEqual([expect.not.stringMatching(runId)]);
    await idsIn(variables);
    const [name] = Object.keys(variables);
    expect(lines).toEqual([expect.stringMatching(new RegExp(`^warn: .*${name} is "true".* recorded twice`))]);
  });

  it.each<[string, Record<string, string>]>([
    ['is off', { LANGSMITH_TRACING: 'false', LANGSMITH_ENDPOINT: url, RUNSPAN_ENDPOINT: url }],
    ['sends them elsewhere', { LANGSMITH_TRACING: 'true', LANGSMITH_ENDPOINT: `${url}1`, RUNSPAN_ENDPOINT: url }],
    ['sends them to its own service', { LANGSMITH_TRACING: 'true', RUNSPAN_ENDPOINT: url }],
  ])('that %s changes nothing', async (_, variables) => {
    const lines = told();
    expect(await idsIn(variables)).toEqual([runId]);
    expect(lines).toEqual([]);
  });
});

describe('the options', () => {
  it('add tags and metadata to every run, and name project and exporter', async () => {
    const recorder = record();
    const sink = makeSink();
    const handler = new RunspanCallbackHandler({
      tags: ['beta', 'shop'],
      metadata: { team: 'a', user: 'none' },
      project: 'cards',
      exporter: sink,
    });
    await poet.invoke({ mood: 'kind' }, { callbacks: [handler], tags: ['shop'], metadata: { user: 'ada' } });

    expect(recorder.runs).toEqual([]);
    expect(sink.records()).toHaveLength(4);
    for (const run of sink.records()) {
      expect(run.session_name).toBe('cards');
      expect(run.tags?.filter((tag) => !tag.startsWith('seq'))).toEqual(['beta', 'shop']);
      expect(run.extra?.metadata).toMatchObject({ team: 'a', user: 'ada' });
    }
  });

  it('that are wrong are told once, and the others hold', () => {
    const lines = told();
    // @ts-expect-error -- unknown
    new RunspanCallbackHandler({ tags: ['a'], colour: 'red' });
    // @ts-expect-error -- no text
    new RunspanCallbackHandler({ project: 7 });
    expect(lines).toEqual([
      'warn: RunspanCallbackHandler: unknown option `colour`; left out.',
      'warn: RunspanCallbackHandler: expected `project` to be text; left out.',
    ]);
  });
});

describe('several handlers', () => {
  it('of one exporter record a step once', async () => {
    const recorder = record();
    const model = new FakeListChatModel({ responses: ['hi'], callbacks: [new RunspanCallbackHandler()] });
    const both = [...callbacks, ...callbacks, new RunspanCallbackHandler()];
    await ChatPromptTemplate.fromTemplate('x').pipe(model).invoke({}, { callbacks: both, runName: 'chain' });
    expect(recorder.runs.map(({ name }) => name)).toEqual(['chain', 'ChatPromptTemplate', 'FakeListChatModel']);
    expect(recorder.runs.every(({ end_time }) => end_time !== undefined)).toBe(true);
  });

  it('of several exporters each record the whole tree', async () => {
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

describe('what cannot be recorded', () => {
  it('leaves the call and its run', async () => {
    const recorder = record();
    const lines = told();
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

  it('is not looked at when inputs are hidden', async () => {
    const sink = makeSink({ hideInputs: true, hideOutputs: true });
    await poet.invoke({ mood: 'kind' }, { callbacks: [new RunspanCallbackHandler({ exporter: sink })] });
    expect(sink.started.map(({ inputs, outputs }) => [inputs, outputs])).toEqual(
      Array.from({ length: 4 }, () => [undefined, undefined]),
    );
    expect(JSON.stringify(sink.records())).not.toMatch(/Good day|kind/);
  });

  it('is ignored of a step that is not known', () => {
    const lines = told();
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

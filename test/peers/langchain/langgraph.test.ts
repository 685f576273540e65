import { AIMessage, HumanMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { FakeListChatModel } from '@langchain/core/utils/testing';
import {
  Annotation,
  Command,
  END,
  interrupt,
  MemorySaver,
  MessagesAnnotation,
  START,
  StateGraph,
} from '@langchain/langgraph';
import { ToolNode } from '@langchain/langgraph/prebuilt';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { traceable } from '#src/index.ts';
import { RunspanCallbackHandler } from '#src/langchain.ts';
import type { RunRecord } from '#src/run/record.ts';
import { record, treeOf } from '../../instrument/recorder.ts';

const callbacks = [new RunspanCallbackHandler()];
const Note = Annotation.Root({ text: Annotation<string> });
/** Removes the steps that LangGraph marks as hidden. */
const visible = (runs: readonly RunRecord[]) => runs.filter(({ tags }) => !tags?.includes('langsmith:hidden'));
const leaf = traceable(async (text: string) => `${text}!`, { name: 'leaf' });

describe('a graph', () => {
  it('is a run with nested runs for its nodes and for their calls', async () => {
    const recorder = record();
    const model = new FakeListChatModel({ responses: ['Hello'] });
    const inner = new StateGraph(Note).addNode('shout', async ({ text }) => ({ text: await leaf(text) }));
    const graph = new StateGraph(Note)
      .addNode('greet', async () => ({ text: String((await model.invoke('Hi')).content) }))
      .addNode('louder', inner.addEdge(START, 'shout').addEdge('shout', END).compile())
      .addEdge(START, 'greet')
      .addEdge('greet', 'louder')
      .addEdge('louder', END)
      .compile();
    const result = await graph.invoke({ text: '' }, { callbacks, runName: 'graph', metadata: { user: 'ada' } });

    expect(result).toEqual({ text: 'Hello!' });
    expect(treeOf(visible(recorder.runs))).toEqual({
      graph: { greet: { FakeListChatModel: {} }, louder: { LangGraph: { shout: { leaf: {} } } } },
    });
    const greet = recorder.runs.find(({ name }) => name === 'greet');
    expect(greet).toMatchObject({
      run_type: 'chain',
      inputs: { text: '' },
      outputs: { text: 'Hello' },
      extra: { metadata: { langgraph_node: 'greet', langgraph_step: 1, user: 'ada' } },
    });
    expect(recorder.runs.some(({ name }) => name === '__start__')).toBe(true);
    expect(recorder.runs.every(({ end_time, error }) => end_time !== undefined && error === undefined)).toBe(true);
  });

  it('of messages has messages in the form of models, and tools with their names', async () => {
    const recorder = record();
    const add = tool(async ({ a, b }: { a: number; b: number }) => leaf(`${a + b}`), {
      name: 'add',
      schema: z.object({ a: z.number(), b: z.number() }),
    });
    const call = { id: 'c1', name: 'add', args: { a: 1, b: 2 }, type: 'tool_call' as const };
    const graph = new StateGraph(MessagesAnnotation)
      .addNode('agent', () => ({ messages: [new AIMessage({ content: '', tool_calls: [call] })] }))
      .addNode('tools', new ToolNode([add]))
      .addEdge(START, 'agent')
      .addEdge('agent', 'tools')
      .addEdge('tools', END)
      .compile();
    await graph.invoke({ messages: [new HumanMessage('1+2?')] }, { callbacks, runName: 'graph' });

    expect(treeOf(visible(recorder.runs))).toEqual({ graph: { agent: {}, tools: { add: { leaf: {} } } } });
    expect(recorder.runs[0]?.outputs).toMatchObject({
      messages: [
        { role: 'user', content: '1+2?' },
        { role: 'assistant', tool_calls: [{ id: 'c1', function: { name: 'add', arguments: '{"a":1,"b":2}' } }] },
        { role: 'tool', tool_call_id: 'c1', content: '3!' },
      ],
    });
  });

  it('that fails has the error, and so has its node', async () => {
    const recorder = record();
    const graph = new StateGraph(Note)
      .addNode('broken', () => {
        throw new TypeError('no');
      })
      .addEdge(START, 'broken')
      .compile();
    await expect(graph.invoke({ text: '' }, { callbacks, runName: 'graph' })).rejects.toThrow('no');
    expect(visible(recorder.runs).map(({ name, error }) => [name, error?.split('\n')[0]])).toEqual([
      ['graph', 'TypeError: no'],
      ['broken', 'TypeError: no'],
    ]);
  });

  it('that is streamed has its complete state as outputs', async () => {
    const recorder = record();
    const graph = new StateGraph(Note)
      .addNode('greet', ({ text }) => ({ text: `Hello ${text}` }))
      .addEdge(START, 'greet')
      .compile();
    const chunks: unknown[] = [];
    for await (const chunk of await graph.stream({ text: 'Ada' }, { callbacks, runName: 'graph' })) chunks.push(chunk);
    expect(chunks).toEqual([{ greet: { text: 'Hello Ada' } }]);
    expect(visible(recorder.runs)).toMatchObject([
      { name: 'graph', inputs: { text: 'Ada' }, outputs: { text: 'Hello Ada' } },
      { name: 'greet', outputs: { text: 'Hello Ada' } },
    ]);
  });
});

describe('a graph that waits for input', () => {
  type Call = (input: { text: string }, config: object) => Promise<object>;
  const streamedEvents: Call = (input, config) => graph.streamEvents(input, { ...config, version: 'v3' });
  const graph = new StateGraph(Note)
    .addNode('ask', async () => {
      const asking = traceable((): string => interrupt({ question: 'Your name?' }), { name: 'asking' });
      return { text: await leaf(asking()) };
    })
    .addEdge(START, 'ask')
    .addEdge('ask', END)
    .compile({ checkpointer: new MemorySaver() });

  it('has its interrupts as outputs, whichever method is called', async () => {
    const recorder = record();
    for (const [index, call] of [graph.invoke, graph.stream, streamedEvents].entries()) {
      const config = { callbacks, runName: 'graph', configurable: { thread_id: `each ${index}` } };
      const result = await call.call(graph, { text: '' }, config);
      if (Symbol.asyncIterator in result) for await (const _ of result as AsyncIterable<unknown>);
    }
    const asked = { text: '', __interrupt__: [{ id: expect.any(String), value: { question: 'Your name?' } }] };
    const graphs = recorder.runs.filter(({ name }) => name === 'graph');
    expect(graphs.map(({ outputs }) => outputs)).toEqual([asked, asked, asked]);
    for (const { events } of graphs) expect(events?.map(({ name }) => name)).toEqual(['GraphInterrupt']);
  });

  it('has its interrupts if it stops before a node or is below another graph', async () => {
    const recorder = record();
    const stopping = new StateGraph(Note)
      .addNode('last', () => ({}))
      .addEdge(START, 'last')
      .compile({ checkpointer: new MemorySaver(), interruptBefore: ['last'] });
    await stopping.invoke({ text: 'a' }, { callbacks, runName: 'stopping', configurable: { thread_id: 's' } });
    const nesting = new StateGraph(Note)
      .addNode('inner', graph)
      .addEdge(START, 'inner')
      .compile({ checkpointer: new MemorySaver() });
    await nesting.invoke({ text: 'b' }, { callbacks, runName: 'nesting', configurable: { thread_id: 'n' } });
    const recorded = visible(recorder.runs).map(({ name, outputs = {}, events = [] }) => [
      name,
      Object.keys(outputs),
      events.map((event) => event.name),
    ]);
    const paused = [['__interrupt__'], ['GraphInterrupt']];
    expect(recorded).toEqual([
      ['stopping', ['text', '__interrupt__'], ['GraphInterrupt']],
      ['nesting', ['text', '__interrupt__'], ['GraphInterrupt']],
      ['inner', ...paused],
      ['LangGraph', ...paused],
      ['ask', ...paused],
      ['asking', [], ['GraphInterrupt']],
    ]);
  });

  it('does not fail: its node has the interrupts, and the graph can be resumed', async () => {
    const recorder = record();
    const config = { callbacks, runName: 'graph', configurable: { thread_id: 't1' } };
    await graph.invoke({ text: '' }, config);
    const [first, waiting] = visible(recorder.runs);
    const asked = [{ id: expect.any(String), value: { question: 'Your name?' } }];
    expect(waiting).toMatchObject({ name: 'ask', outputs: { __interrupt__: asked } });
    expect(waiting?.events?.map(({ name }) => name)).toEqual(['GraphInterrupt']);
    expect(visible(recorder.runs).map(({ error, end_time }) => [error, typeof end_time])).toEqual([
      [undefined, 'string'],
      [undefined, 'string'],
      [undefined, 'string'],
    ]);

    recorder.clear();
    expect(await graph.invoke(new Command({ resume: 'Ada' }), config)).toEqual({ text: 'Ada!' });
    expect(treeOf(visible(recorder.runs))).toEqual({ graph: { ask: { asking: {}, leaf: {} } } });
    expect(recorder.runs[0]?.inputs).toEqual({ input: { resume: 'Ada' } });
    expect(recorder.runs[0]?.extra?.metadata?.thread_id).toBe('t1');
    expect(first?.extra?.metadata?.thread_id).toBe('t1');
  });

  it('or hands over to its parent graph does not fail', async () => {
    const recorder = record();
    const inner = new StateGraph(Note)
      .addNode('leave', () => new Command({ graph: Command.PARENT, goto: 'other', update: { text: 'left' } }), {
        ends: [],
      })
      .addEdge(START, 'leave')
      .compile();
    const outer = new StateGraph(Note)
      .addNode('inner', inner, { ends: ['other'] })
      .addNode('other', ({ text }) => ({ text: `${text} and arrived` }))
      .addEdge(START, 'inner')
      .addEdge('other', END)
      .compile();
    expect(await outer.invoke({ text: '' }, { callbacks, runName: 'outer' })).toEqual({ text: 'left and arrived' });
    const leave = recorder.runs.find(({ name }) => name === 'leave');
    expect(leave?.events?.map(({ name }) => name)).toEqual(['ParentCommand']);
    expect(leave?.outputs).toEqual({ command: { graph: '__parent__', goto: ['other'], update: { text: 'left' } } });
    expect(recorder.runs.filter(({ error, end_time }) => error !== undefined || end_time === undefined)).toEqual([]);
  });
});

describe('a graph whose signal is aborted', () => {
  /** Returns a graph of a graph. The inner node waits until its signal is aborted, or throws `error`. */
  const nested = (error?: Error) => {
    const inner = new StateGraph(Note)
      .addNode('wait', async (_, { signal }) => {
        if (error !== undefined) throw error;
        const model = new FakeListChatModel({ responses: ['a long answer'], sleep: 60_000 });
        await model.invoke('Hi', { signal });
        return {};
      })
      .addEdge(START, 'wait')
      .addEdge('wait', END);
    return new StateGraph(Note)
      .addNode('inner', inner.compile())
      .addEdge(START, 'inner')
      .addEdge('inner', END)
      .compile();
  };
  const readAll = async (stream: AsyncIterable<unknown>) => {
    for await (const _ of stream);
  };
  type Options = { callbacks: RunspanCallbackHandler[]; signal?: AbortSignal; runName: string };
  const reads: [string, (options: Options) => Promise<unknown>][] = [
    ['invoke', (options) => nested().invoke({ text: '' }, options)],
    ['stream', async (options) => readAll(await nested().stream({ text: '' }, options))],
    ['streamEvents', (options) => readAll(nested().streamEvents({ text: '' }, { ...options, version: 'v2' }))],
  ];
  const steps = ['graph', 'inner', 'LangGraph', 'wait'];
  const ends = (runs: readonly RunRecord[]) =>
    steps.map((name) => {
      const run = runs.find((each) => each.name === name);
      return [run?.error !== undefined, run?.extra?.runspan_end_reason];
    });

  it.each(reads)('is cancelled at every level, read with %s', async (_, read) => {
    const recorder = record();
    const controller = new AbortController();
    const reading = read({ callbacks, signal: controller.signal, runName: 'graph' });
    reading.catch(() => {});
    await expect.poll(() => recorder.runs.map(({ name }) => name)).toContain('FakeListChatModel');
    controller.abort();
    await expect(reading).rejects.toThrow();
    await expect.poll(() => ends(recorder.runs)).toEqual(steps.map(() => [true, 'cancelled']));
  });

  it.each<[string, Error | undefined, (() => AbortSignal) | undefined]>([
    ['by a timeout', undefined, () => AbortSignal.timeout(200)],
    ['by nobody, but throws an error with the same message', new Error('Abort'), undefined],
  ])('%s has failed at every level', async (_, error, signal) => {
    const recorder = record();
    const options = { callbacks, runName: 'graph', ...(signal && { signal: signal() }) };
    await expect(nested(error).invoke({ text: '' }, options)).rejects.toThrow();
    await expect.poll(() => ends(recorder.runs)).toEqual(steps.map(() => [true, undefined]));
  });
});

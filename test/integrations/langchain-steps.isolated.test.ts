import { forgetPackage } from '../support/fresh-copy.ts';
import '@langchain/core/context';
import { BaseCallbackHandler } from '@langchain/core/callbacks/base';
import { awaitAllCallbacks } from '@langchain/core/callbacks/promises';
import { setContextVariable } from '@langchain/core/context';
import { RunnableLambda, RunnableSequence } from '@langchain/core/runnables';
import { tool } from '@langchain/core/tools';
import { FakeListChatModel } from '@langchain/core/utils/testing';
import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { traceable } from '#src/index.ts';
import { RunspanCallbackHandler } from '#src/integrations/langchain/handler.ts';
import { currentRun, startRun, withRun } from '#src/run/start-run.ts';
import { record, treeOf } from '../instrument/recorder.ts';
import { makeSink } from '../run/memory-sink.ts';
import { cases } from '../support/campaign.ts';
import { collected, collectUntil } from '../support/garbage.ts';

const handler = new RunspanCallbackHandler();
const callbacks = [handler];

const leaf = (name: string) => traceable(async () => name, { name });
const lambda = (name: string, fn: (input: string) => unknown) =>
  RunnableLambda.from<string, unknown>(async (input) => fn(input)).withConfig({ runName: name });

test.each(['true', 'false'])(
  'concurrent chains are below their callers, with LANGCHAIN_CALLBACKS_BACKGROUND=%s',
  async (background) => {
    /** A slow handler of another library. */
    class Slow extends BaseCallbackHandler {
      name = 'slow';
      override handleChainStart = () => new Promise(setImmediate);
      override handleChainEnd = () => new Promise(setImmediate);
    }
    vi.stubEnv('LANGCHAIN_CALLBACKS_BACKGROUND', background);
    const recorder = record();
    const handlers = [new Slow(), new RunspanCallbackHandler() as unknown as BaseCallbackHandler, new Slow()];
    const chain = RunnableSequence.from([lambda('one', (x) => x), lambda('two', (x) => x)]);
    const config = { callbacks: handlers, runName: 'chain' };
    const ask = traceable((n: number) => chain.invoke(`${n}`, config), { name: 'ask' });
    await Promise.all(Array.from({ length: 20 }, (_, n) => ask(n)));

    // LangChain calls the handler synchronously, so no step is open.
    expect(recorder.runs.filter(({ end_time }) => end_time === undefined)).toEqual([]);
    const asks = recorder.runs.filter(({ name }) => name === 'ask');
    expect(asks).toHaveLength(20);
    for (const { id, inputs, trace_id } of asks) {
      expect(treeOf(recorder.runs, id)).toEqual({ chain: { one: {}, two: {} } });
      const chainRun = recorder.runs.find(({ parent_run_id }) => parent_run_id === id);
      expect(chainRun).toMatchObject({ inputs: { input: `${inputs.input}` }, trace_id });
    }
    await awaitAllCallbacks();
  },
);

test('outputs that the application sets are recorded instead of the result of a step', async () => {
  const recorder = record();
  const set = (name: string): string => {
    currentRun()?.set({ outputs: { own: name } });
    return 'found';
  };
  const search = tool(async () => set('search'), { name: 'search', schema: z.object({}) });
  await lambda('step', async () => {
    set('step');
    return search.invoke({});
  }).invoke('x', { callbacks });
  expect(recorder.runs.map(({ name, outputs }) => [name, outputs])).toEqual([
    ['step', { own: 'step' }],
    ['search', { own: 'search' }],
  ]);
});

const search = tool(async () => leaf('fetch')(), { name: 'search', schema: z.object({}) });

test.each<[string, () => Promise<unknown>, tree: object]>([
  [
    'traced functions in tools and nested steps',
    () => {
      const agent = lambda('agent', async () => {
        await leaf('plan')();
        await search.invoke({});
        await leaf('answer')();
      });
      return lambda('outer', () => agent.invoke('x')).invoke('x', { callbacks });
    },
    { outer: { agent: { plan: {}, search: { fetch: {} }, answer: {} } } },
  ],
  [
    'chains and traced functions inside of each other',
    () => {
      const inner = lambda('inner', () => leaf('leaf')());
      const middle = traceable(() => inner.invoke('x'), { name: 'middle' });
      const chain = lambda('chain', () => middle());
      return traceable(() => chain.invoke('x', { callbacks }), { name: 'outer' })();
    },
    { outer: { chain: { middle: { inner: { leaf: {} } } } } },
  ],
  [
    'a traced function after LangChain stores values in its context',
    () => {
      const work = async () => {
        setContextVariable('a', 1);
        await leaf('after a variable')();
        for await (const _ of await lambda('stream', (x) => x).stream('x')) await leaf('in a stream')();
        await leaf('last')();
      };
      return lambda('step', traceable(work, { name: 'work' })).invoke('x', { callbacks });
    },
    { step: { work: { 'after a variable': {}, stream: {}, 'in a stream': {}, last: {} } } },
  ],
  [
    'traced functions with `withRun` and `root`',
    () => {
      const job = startRun({ name: 'job' });
      const alone = traceable(() => leaf('below alone')(), { name: 'alone', root: true });
      const step = lambda('step', async () => {
        await withRun(job, leaf('below job'));
        await alone();
        job.end();
      });
      return step.invoke('x', { callbacks });
    },
    { job: { 'below job': {} }, step: {}, alone: { 'below alone': {} } },
  ],
  ['a traced function in a step that is not recorded', () => lambda('step', leaf('leaf')).invoke('x'), { leaf: {} }],
  [
    'a step whose handler belongs only to its component',
    () => {
      const model = new FakeListChatModel({ responses: ['a'], callbacks });
      return traceable(() => lambda('unseen', () => model.invoke('x')).invoke('x'), { name: 'outer' })();
    },
    { outer: { FakeListChatModel: {} } },
  ],
])('%s are recorded as one tree', async (_, call, tree) => {
  const recorder = record();
  await call();
  expect(treeOf(recorder.runs)).toEqual(tree);
  expect(recorder.runs.filter(({ end_time }) => end_time === undefined)).toEqual([]);
});

test('the current run in a step is the run of the step', async () => {
  const recorder = record();
  await lambda('step', () => currentRun()?.set({ metadata: { seen: 1 } })).invoke('x', { callbacks });
  expect(recorder.runs[0]?.extra?.metadata).toMatchObject({ seen: 1 });
});

test('a traced function uses the exporter and the project of its step', async () => {
  const recorder = record();
  const sink = makeSink();
  const own = new RunspanCallbackHandler({ exporter: sink, project: 'cards' });
  await lambda('step', () => leaf('leaf')()).invoke('x', { callbacks: [own] });
  expect(recorder.runs).toEqual([]);
  expect(sink.records().map(({ name, session_name }) => [name, session_name])).toEqual([
    ['step', 'cards'],
    ['leaf', 'cards'],
  ]);
});

test('a step of a trace that is not sampled is not recorded, and neither are nested runs', async () => {
  const sink = makeSink({}, ({ name }) => name === 'outer');
  const own = new RunspanCallbackHandler({ exporter: sink });
  await lambda('outer', () => lambda('inner', () => leaf('leaf')()).invoke('x')).invoke('x', { callbacks: [own] });
  expect(sink.started).toEqual([]);
});

describe('a stream that is left before its end', () => {
  test('interrupts its runs, and no others, after it is collected', async () => {
    const recorder = record();
    const model = new FakeListChatModel({ responses: ['abc'] });
    const chain = RunnableSequence.from([lambda('ask', () => 'x'), model]);
    await chain.invoke('x', { callbacks, runName: 'whole' });
    let release = (): void => {};
    const waiting = new Promise<void>((resolve) => {
      release = resolve;
    });
    const open = lambda('open', () => waiting).invoke('x', { callbacks });
    await (async () => {
      for await (const _ of await chain.stream('x', { callbacks, runName: 'left' })) break;
    })();
    const left = () => recorder.runs.filter(({ extra }) => extra?.runspan_end_reason === 'interrupted');
    await collectUntil(() => left().length === 2);

    expect(left().map(({ name, error }) => [name, error])).toEqual([
      ['left', 'Interrupted: the result was garbage-collected before it ended'],
      ['FakeListChatModel', 'Interrupted: the result was garbage-collected before it ended'],
    ]);
    expect(left().every(({ end_time }) => end_time !== undefined)).toBe(true);
    expect(recorder.runs.filter(({ end_time }) => end_time === undefined).map(({ name }) => name)).toEqual(['open']);
    release();
    await open;
    expect(recorder.runs.find(({ name }) => name === 'open')?.end_time).toBeDefined();
  });

  test('by its signal while a chunk is buffered is interrupted, because LangChain reports the abort only to the reader', async () => {
    const recorder = record();
    await lambda('seen to end', (x) => x).invoke('x', { callbacks });
    const model = new FakeListChatModel({ responses: ['abc'] });
    const read = async () => {
      const stopped = new AbortController();
      for await (const _ of await model.stream('x', { callbacks, signal: stopped.signal })) {
        // By the next turn, the stream has read ahead. Within this turn, that depends on the version of Node.
        await new Promise(setImmediate);
        stopped.abort();
      }
    };
    await expect(read()).rejects.toThrow();
    expect(recorder.runs[1]?.end_time).toBeUndefined();
    await collectUntil(() => recorder.runs[1]?.end_time !== undefined);
    expect(recorder.runs[1]).toMatchObject({
      error: 'Interrupted: the result was garbage-collected before it ended',
      extra: { runspan_end_reason: 'interrupted' },
      outputs: { messages: [{ role: 'assistant', content: expect.stringMatching(/^a/) }] },
    });
  });

  test('by its signal while the model generates is cancelled, because LangChain reports the abort', async () => {
    const recorder = record();
    const stopped = new AbortController();
    class Stopped extends FakeListChatModel {
      override async *_streamResponseChunks(...args: Parameters<FakeListChatModel['_streamResponseChunks']>) {
        for await (const chunk of super._streamResponseChunks(...args)) {
          if (chunk.text === 'b') stopped.abort();
          yield chunk;
        }
      }
    }
    const model = new Stopped({ responses: ['abc'] });
    const stream = await model.stream('x', { callbacks, signal: stopped.signal });
    const read = async () => {
      for await (const _ of stream);
    };
    await expect(read()).rejects.toThrow();
    await expect
      .poll(() => recorder.runs[0])
      .toMatchObject({
        end_time: expect.any(String),
        error: expect.stringMatching(/^AbortError: /),
        extra: { runspan_end_reason: 'cancelled' },
        outputs: { messages: [{ role: 'assistant', content: 'a' }] },
      });
  });
});

test('a broken stream of several completions keeps the text of the first', async () => {
  const recorder = record();
  class Several extends FakeListChatModel {
    override async *_streamResponseChunks(...[, , manager]: Parameters<FakeListChatModel['_streamResponseChunks']>) {
      for (const text of ['a', 'b']) {
        for (const completion of [0, 1]) await manager?.handleLLMNewToken(text, { prompt: 0, completion });
      }
      yield Promise.reject(new Error('broken'));
    }
  }
  const read = async () => {
    for await (const _ of await new Several({ responses: [] }).stream('x', { callbacks }));
  };
  await expect(read()).rejects.toThrow('broken');
  expect(recorder.runs).toMatchObject([{ outputs: { messages: [{ role: 'assistant', content: 'ab' }] } }]);
});

test('a step stays open after its list of tags is collected if LangChain ends steps with other lists', async () => {
  forgetPackage();
  const fresh = await import('#src/langchain.ts');
  const sink = makeSink();
  const own = new fresh.RunspanCallbackHandler({ exporter: sink });
  own.handleChainStart({}, {}, 'one', undefined, []);
  own.handleChainEnd({}, 'one', undefined, []);
  const list = (() => {
    const tags: string[] = [];
    own.handleChainStart({}, {}, 'open', undefined, tags);
    return new WeakRef(tags);
  })();
  await collected(list);
  expect(sink.started.at(-1)?.endTime).toBeUndefined();
});

describe('open steps', () => {
  const starts = (own: RunspanCallbackHandler, from: number, count: number): void => {
    for (let n = from; n < from + count; n++) own.handleChainStart({}, {}, `step-${n}`);
  };

  test('are limited to 10 000: another step interrupts the oldest step', () => {
    const sink = makeSink();
    const own = new RunspanCallbackHandler({ exporter: sink });
    starts(own, 0, 9_999);
    expect(sink.ended).toHaveLength(0);
    starts(own, 9_999, 1);
    expect(sink.ended).toHaveLength(0);
    starts(own, 10_000, 1);
    expect(sink.ended).toHaveLength(1);
    expect(sink.ended[0]).toBe(sink.started[0]);
    expect(sink.records()[0]?.extra?.runspan_end_reason).toBe('interrupted');
    for (let n = 0; n <= 10_000; n++) own.handleChainEnd({}, `step-${n}`);
    expect(sink.ended).toHaveLength(10_001);
  });

  test('are the only steps that are kept in memory', async () => {
    const kept: WeakRef<object>[] = [];
    const sink = { ...makeSink(), start: (run: object) => kept.push(new WeakRef(run)) > 0, end: () => {} };
    const own = new RunspanCallbackHandler({ exporter: sink });
    const chain = RunnableSequence.from([lambda('one', (x) => x), lambda('two', () => leaf('leaf')())]);
    const calls = cases(1_000);
    for (let n = 0; n < calls; n++) await chain.invoke('x', { callbacks: [own] });
    expect(kept).toHaveLength(4 * calls);
    const left = () => kept.filter((ref) => ref.deref() !== undefined).length;
    await collectUntil(() => left() === 0);
    expect(left()).toBe(0);
    expect(own).toBeDefined();
  });
});

test.each(['hideInputs', 'hideOutputs'])('the events of an agent have no data with `%s`', (option) => {
  const recorder = record();
  const handler = new RunspanCallbackHandler({ [option]: true });
  handler.handleChainStart({}, {}, 'agent');
  handler.handleText('Cork?', 'agent');
  handler.handleAgentAction({ tool: 'weather', toolInput: 'Cork' }, 'agent');
  handler.handleAgentEnd({ returnValues: { output: 'Rain.' } }, 'agent');
  handler.handleChainEnd({}, 'agent');
  expect(recorder.runs[0]?.events?.map(({ name, kwargs }) => [name, kwargs])).toEqual(
    ['text', 'agent_action', 'agent_end'].map((name) => [name, undefined]),
  );
});

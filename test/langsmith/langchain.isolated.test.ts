import { AsyncResource } from 'node:async_hooks';
import { awaitAllCallbacks } from '@langchain/core/callbacks/promises';
import { RunnableLambda } from '@langchain/core/runnables';
import { LangChainTracer } from '@langchain/core/tracers/tracer_langchain';
import { Client as Theirs } from 'langsmith';
import { expect, onTestFinished, test, vi } from 'vitest';
import { configure, withContext } from '#src/index.ts';
import { RunspanCallbackHandler } from '#src/langchain.ts';
import { Client, getLangchainCallbacks, RunnableTraceable, RunTree, traceable } from '#src/langsmith.ts';
import { overrideSink } from '#src/run/sink.ts';
import { record, treeOf } from '../instrument/recorder.ts';
import { keeping } from '../otel/set-up.ts';
import { environmentOf } from '../support/environment.ts';
import { startReceiver } from '../support/receiver.ts';

const inner = RunnableLambda.from((n: number, { tags = [] }) => tags[0] ?? n + 1).withConfig({ runName: 'inner' });
const step = RunnableLambda.from(async (n: number) => inner.invoke(n)).withConfig({ runName: 'step' });

test('callbacks need a tree or a current run, and record steps below a tree also outside of a traced function', async () => {
  const recorder = record();
  await expect(getLangchainCallbacks()).rejects.toThrow('Could not get the current run tree');
  const tree = new RunTree({ name: 'by hand' });
  await tree.postRun();
  const callbacks = (await getLangchainCallbacks(tree)) as never;
  expect(await step.invoke(1, { callbacks })).toBe(2);
  expect(await traceable((n: number) => step.invoke(n, { callbacks }), { name: 'elsewhere' })(1)).toBe(2);
  await tree.end();
  await tree.patchRun();
  expect(treeOf(recorder.runs)).toEqual({ 'by hand': { step: { inner: {} } }, elsewhere: {} });
  expect(recorder.runs.every(({ end_time }) => end_time !== undefined)).toBe(true);
});

test('a runnable of a traced function has the class of LangChain, or throws the error of the missing package', () => {
  expect(new RunnableTraceable({ func: traceable(async () => 1) })).toMatchObject({ lc_runnable: true });
  vi.spyOn(process, 'cwd').mockReturnValue('/');
  expect(() => RunnableTraceable.from(traceable(async () => 1))).toThrow(
    "Cannot find module '@langchain/core/runnables'",
  );
});

test('a configuration without a step leads to a root run', async () => {
  const recorder = record();
  const tree = RunTree.fromRunnableConfig({ metadata: { user: 'ada' } }, { name: 'alone' });
  await tree.postRun();
  expect(recorder.runs).toMatchObject([{ name: 'alone' }]);
  expect(tree.parent_run_id).toBeUndefined();
});

test.each([
  ['a client', () => new Client({ hideInputs: true })],
  ["a client of LangSmith's package", () => new Theirs({ apiKey: 'key', hideInputs: true, autoBatchTracing: false })],
])('a run below a step that another tracer has recorded has the masks of its client: %s', async (_, makeClient) => {
  const recorder = record();
  const id = '0193b3a0-2222-7000-8000-000000000001';
  const dotted_order = `20260101T000000000000Z${id}`;
  const step = { id, name: 'step', trace_id: id, dotted_order, run_type: 'chain', client: makeClient() };
  const handlers = [{ name: 'langchain_tracer', getRun: () => step }];
  const config = { callbacks: { handlers, getParentRunId: () => id } };
  const tree = RunTree.fromRunnableConfig(config as never, { name: 'below', inputs: { text: 'hunter2' } });
  await tree.postRun();
  await tree.end({ result: 1 });
  await tree.patchRun();
  expect(recorder.runs).toMatchObject([{ name: 'below', parent_run_id: id, inputs: {}, outputs: { result: 1 } }]);
});

/** Starts a receiver, which LangSmith's variables name, until the test finishes. */
async function service() {
  const receiver = await startReceiver();
  environmentOf({ LANGSMITH_TRACING: 'true', LANGSMITH_ENDPOINT: receiver.url });
  return receiver;
}

test('steps go to the client of their function, whichever call has started the queue of LangChain', async () => {
  const recorder = record();
  const other = await service();
  const client = new Client({ apiUrl: other.url });
  onTestFinished(async () => void (await client.exporter?.close()));
  const calls = Array.from({ length: 50 }, (_, index) => {
    const options = [{ tracingEnabled: false }, { client, name: `other ${index}` }, { name: `own ${index}` }][
      index % 3
    ];
    const call = traceable((n: number) => step.invoke(n), options);
    return withContext({ userId: `user ${index}` }, () => call(index));
  });
  await Promise.all(calls);
  await awaitAllCallbacks();
  await client.flush();
  const indices = Array.from({ length: 50 }, (_, index) => index);
  const trees = (name: string, rest: number) =>
    Object.fromEntries(indices.filter((it) => it % 3 === rest).map((it) => [`${name} ${it}`, { step: { inner: {} } }]));
  const sent = await other.runs();
  expect(treeOf(sent)).toEqual(trees('other', 1));
  expect(treeOf(recorder.runs)).toEqual(trees('own', 2));
  for (const { trace_id, extra } of [...sent, ...recorder.runs]) {
    const root = [...sent, ...recorder.runs].find(({ id }) => id === trace_id);
    expect(extra?.metadata?.user_id).toBe(`user ${root?.name.split(' ')[1]}`);
  }
});

test('a run that is posted from a queue is recorded below its parent, and a tree from below "off" is not', async () => {
  const recorder = record();
  const parent = new RunTree({ name: 'parent' });
  await parent.postRun();
  const off = traceable(
    async () => {
      const queue = AsyncResource.bind((work: () => unknown) => work());
      return { queue, tree: new RunTree({ name: 'secret' }), child: parent.createChild({ name: 'child' }) };
    },
    { tracingEnabled: false },
  );
  const { queue, tree, child } = await off();
  const id = '019a0000-0000-7000-8000-000000000001';
  const dotted_order = `${parent.dotted_order}.20991128T000000000000Z${id}`;
  await queue(() =>
    new Client().createRun({ id, name: 'posted', dotted_order, parent_run_id: parent.id, trace_id: parent.id }),
  );
  await queue(() => new Client().createRun({ name: 'root' }));
  await queue(() => child.postRun());
  await tree.postRun();
  expect(treeOf(recorder.runs)).toEqual({ parent: { posted: {}, child: {} }, root: {} });
});

test('steps, and the functions inside them, follow the held trace of their function', async () => {
  await service();
  const { sink, arrived } = keeping(() => 0);
  onTestFinished(overrideSink(sink));
  const below = traceable(() => Promise.reject(new Error('broke')), { name: 'below' });
  const chain = RunnableLambda.from(() => below().catch(() => 1)).withConfig({ runName: 'chain' });
  await traceable(() => chain.invoke(1), { name: 'held' })();
  await awaitAllCallbacks();
  expect(arrived()).toEqual(['below kept-error 0', 'chain kept-error 0', 'held kept-error 0']);
});

test('a client of another service records the steps that a handler sends to the exporter', async () => {
  const recorder = record();
  const other = await startReceiver();
  const client = new Client({ apiUrl: other.url, apiKey: 'key' });
  const tracer = Object.assign(new LangChainTracer({ client: client as never }), { awaitHandlers: true });
  await step.invoke(1, { callbacks: [new RunspanCallbackHandler() as never, tracer] });
  await awaitAllCallbacks();
  await client.flush();
  expect(treeOf(recorder.runs)).toEqual({ step: { inner: {} } });
  expect(treeOf(await other.runs())).toEqual({ step: { inner: {} } });
});

test('a step below a traced function inherits the configuration of the step around the function', async () => {
  const recorder = record();
  const outer = RunnableLambda.from(() => traceable(() => step.invoke(1), { name: 'traced' })());
  const call = (callbacks: never[]) => outer.invoke(1, { runName: 'outer', tags: ['ada'], callbacks });
  expect([await call([new RunspanCallbackHandler() as never]), await traceable(call)([])]).toEqual(['ada', 'ada']);
  await awaitAllCallbacks();
  const runs = { outer: { traced: { step: { inner: {} } } } };
  expect(treeOf(recorder.runs)).toEqual({ ...runs, call: runs });
});

test('steps below a traced function, and functions below a step, are held with the trace', async () => {
  const receiver = await service();
  const exporter = configure({ sampleRate: 0, keep: [({ name }) => name === 'kept'] });
  const outer = RunnableLambda.from(() => traceable(() => step.invoke(1), { name: 'traced' })());
  const call = () => outer.invoke(1, { runName: 'outer' }).finally(awaitAllCallbacks);
  for (const name of ['left out', 'kept']) await traceable(call, { name })();
  await exporter.close();
  expect((await receiver.runs()).map(({ name }) => name)).toEqual(['kept', 'outer', 'traced', 'step', 'inner']);
});

test('LangChain sends nothing itself while tracing is off', async () => {
  const receiver = await service();
  const exporter = configure({ tracing: false });
  onTestFinished(async () => void (await exporter.close()));
  expect(await traceable((n: number) => step.invoke(n), { name: 'off' })(1)).toBe(2);
  await awaitAllCallbacks();
  expect(await receiver.runs()).toEqual([]);
});

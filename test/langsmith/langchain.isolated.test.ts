import { RunnableLambda } from '@langchain/core/runnables';
import { expect, test, vi } from 'vitest';
import { getLangchainCallbacks, RunnableTraceable, RunTree, traceable } from '#src/langsmith.ts';
import { record, treeOf } from '../instrument/recorder.ts';

const inner = RunnableLambda.from((n: number) => n + 1).withConfig({ runName: 'inner' });
const step = RunnableLambda.from(async (n: number) => inner.invoke(n)).withConfig({ runName: 'step' });

test('callbacks record steps below a tree, also outside of a traced function', async () => {
  const recorder = record();
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

test('callbacks need a tree or a current run', async () => {
  record();
  await expect(getLangchainCallbacks()).rejects.toThrow('Could not get the current run tree');
});

test('a runnable of a traced function can be a step of a chain', async () => {
  const recorder = record();
  const double = traceable(async (n: number) => n * 2, { name: 'double' });
  const chain = RunnableTraceable.from(double).pipe(inner);
  const answer = traceable(
    async (n: number) => chain.invoke(n, { callbacks: await getLangchainCallbacks(), runName: 'chain' }),
    { name: 'answer' },
  );
  expect(await answer(2)).toBe(5);
  expect(treeOf(recorder.runs)).toEqual({ answer: { chain: { double: {}, inner: {} } } });
  expect(new RunnableTraceable({ func: double })).toMatchObject({ lc_runnable: true });
});

test('a runnable without LangChain throws the error of the missing package', () => {
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

import { afterAll, beforeEach, expect, test } from 'vitest';
import { isInRun, tracedCall } from '../../src/clients/traced-call.ts';
import { startRun, traceable, withRun } from '../../src/index.ts';
import { recordRuns } from '../../src/testing.ts';

const recorded = recordRuns();
beforeEach(() => recorded.clear());
afterAll(() => recorded.stop());

const call = <Result>(make: () => Promise<Result>) =>
  tracedCall({ name: 'things.get', runType: 'tool', inputs: () => ({ id: 1 }) }, make);

test('outside of any run a call is just made', async () => {
  expect(isInRun()).toBe(false);
  expect(await call(async () => 5)).toBe(5);
  expect(recorded.runs).toEqual([]);
});

test('within a run it is a run below, with what it tells of itself and of its result', async () => {
  const result = { a: 1 };
  const outer = traceable(async () => [isInRun(), await call(async () => result)], { name: 'outer' });
  const answer = await outer();
  expect(answer).toEqual([true, result]);
  expect(answer[1]).toBe(result);
  const run = recorded.run('things.get');
  expect(run).toMatchObject({ run_type: 'tool', inputs: { id: 1 }, outputs: { a: 1 } });
  expect(run.parent_run_id).toBe(recorded.run('outer').id);
});

test('what it tells of its result may be something else', async () => {
  const told = { name: 'tokens', runType: 'tool', inputs: () => ({}), outputs: () => ({ count: 2 }) } as const;
  await withRun(startRun({ name: 'outer' }), () => tracedCall(told, async () => ['secret-url']));
  expect(recorded.run('tokens').outputs).toEqual({ count: 2 });
});

test('its error is that of the run, and comes as it is', async () => {
  const gone = new Error('gone');
  const made = withRun(startRun({ name: 'outer' }), () => call(() => Promise.reject(gone)));
  await expect(made).rejects.toBe(gone);
  expect(recorded.run('things.get').error).toMatch(/^Error: gone/);
});

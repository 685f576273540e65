import { describe, expect, test } from 'vitest';
import type { RunOutline } from '#src/receiver/domain/run-view.ts';
import { foldedCalls, sourcesOf, withoutInternal } from '#src/receiver/domain/trace/call-records.ts';

const run = (id: string, fields: Partial<RunOutline> = {}): RunOutline => ({
  ...{ id, name: id, run_type: 'llm', status: 'success', start_time: '2026-11-20T07:00:00Z' },
  ...fields,
});
const of = (head: string, fields: Partial<RunOutline> = {}) => run(`${head}+`, { same_call_as: head, ...fields });
const usage = { total_tokens: 10 };
const later = { first_token_time: '2026-11-20T07:00:02.5Z', recorded_by: 'openai' };
const earlier = { first_token_time: '2026-11-20T07:00:01Z', recorded_by: 'fetch' };

test('the records of a call are one run, which keeps its own content', () => {
  const head = run('a', { model: 'gpt-4o', usage, error: 'Error: no', status: 'error' });
  const records = [of('a', { model: 'other', usage: { total_tokens: 9 }, usage_counts: false, error: 'Error: other' })];
  expect(foldedCalls([head, ...records])).toEqual({ runs: [head], records: new Map([['a', records]]) });
});

test('a call gets what only other records have: the model, the error, the usage that counts and the first token', () => {
  const head = run('a', { status: 'incomplete', usage: { total_tokens: 9 }, usage_counts: false, ...later });
  const records = [of('a', earlier), of('a', { model: 'gpt-4o', usage, error: 'Error: no' })];
  const { runs } = foldedCalls([head, ...records]);
  expect(runs).toEqual([
    {
      ...run('a', { status: 'incomplete', ...later }),
      model: 'gpt-4o',
      usage,
      error: 'Error: no',
      first_token_time: earlier.first_token_time,
    },
  ]);
  expect(sourcesOf([head, ...records])).toBe('openai, fetch');
});

test('the error of a further record is not that of a call that succeeded', () => {
  expect(foldedCalls([run('a'), of('a', { status: 'error', error: 'Error: no' })]).runs).toEqual([run('a')]);
});

test('the usage of a call does not count if that of no record counts', () => {
  const uncounted = { usage, usage_counts: false as const };
  expect(foldedCalls([run('a', uncounted), of('a', uncounted)]).runs).toEqual([run('a', uncounted)]);
});

test('runs below a further record are below the head of its call', () => {
  const tree = [run('a'), of('a', { parent_run_id: 'a' }), run('b', { parent_run_id: 'a+' }), of('gone', { id: 'c' })];
  const { runs } = foldedCalls(tree);
  expect(runs.map(({ id, parent_run_id: parent }) => [id, parent])).toEqual([
    ['a', undefined],
    ['b', 'a'],
    ['c', undefined],
  ]);
});

describe('internal steps', () => {
  const step = (id: string, parent?: string, fields: Partial<RunOutline> = {}) =>
    run(id, { internal: true, ...(parent && { parent_run_id: parent }), ...fields });
  const drawn = (runs: readonly RunOutline[]) => {
    const { runs: shown, leftOut } = withoutInternal(runs);
    return [shown.map(({ id, parent_run_id: parent }) => `${id}<${parent}`).join(' '), leftOut];
  };

  test('are left out, and the runs below them are below the nearest run above that is left', () => {
    const below = [
      run('d', { parent_run_id: 'c' }),
      run('e', { parent_run_id: 'b' }),
      run('f', { parent_run_id: 'd' }),
    ];
    expect(drawn([...below, run('a'), step('b', 'a'), step('c', 'b')])).toEqual(['d<a e<a f<d a<undefined', 2]);
  });

  test('stay if they are roots, have no parent in the trace, or did not succeed', () => {
    const kept = [
      step('a'),
      step('b', 'gone'),
      step('c', 'a', { status: 'error' }),
      step('d', 'c', { status: 'pending' }),
    ];
    expect(drawn([...kept, step('e', 'd')])).toEqual(['a<undefined b<gone c<a d<c', 1]);
  });

  test('of a chain of 100,000, and of a cycle, are left out in linear time', () => {
    const chain = Array.from({ length: 100_000 }, (_, at) => step(`${at + 1}`, `${at}`));
    const leaves = Array.from({ length: 100_000 }, (_, at) => run(`leaf ${at}`, { parent_run_id: `${at}` }));
    const { runs, leftOut } = withoutInternal([run('0'), ...chain, ...leaves]);
    expect(leftOut).toBe(100_000);
    expect(runs.slice(1).every(({ parent_run_id: parent }) => parent === '0')).toBe(true);
    expect(drawn([step('a', 'b'), step('b', 'a'), run('c', { parent_run_id: 'a' })])).toEqual(['c<b', 2]);
  });
});

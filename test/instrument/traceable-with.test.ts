import { describe, expect, test } from 'vitest';
import { traceable } from '../../src/instrument/traceable.ts';
import { runIdFrom } from '../../src/run/ids.ts';
import { told } from '../support/told.ts';
import { record, treeOf } from './recorder.ts';

describe('`with` of a wrapped function', () => {
  test('gives one call its own name, project and id, and adds tags and metadata', () => {
    const recorder = record();
    const answer = traceable((question: string) => question.length, {
      name: 'answer',
      tags: ['shop'],
      metadata: { team: 'a', region: 'eu' },
    });
    const id = runIdFrom('order-17');
    const own = { name: 'order', project: 'orders', id, tags: ['vip'], metadata: { region: 'us', user: 7 } };
    expect(answer.with(own)('tea')).toBe(3);
    expect(answer('tea')).toBe(3);

    expect(recorder.runs[0]).toMatchObject({ id, name: 'order', session_name: 'orders', tags: ['shop', 'vip'] });
    expect(recorder.runs[0]?.extra?.metadata).toEqual({ team: 'a', region: 'us', user: 7 });
    expect(recorder.runs[1]).toMatchObject({ name: 'answer', session_name: 'default', tags: ['shop'] });
    expect(recorder.runs[1]?.extra?.metadata).toEqual({ team: 'a', region: 'eu' });
  });

  test('gives its id to one call: those after it, and those inside of it, get new ones, and a line says so', () => {
    const recorder = record();
    const lines = told();
    const id = runIdFrom('order-18');
    const count: (n: number) => number = traceable((n: number) => (n === 0 ? 0 : count(n - 1) + 1), {
      name: 'count',
      id,
    });
    expect(count(2)).toBe(2);
    const again = traceable(() => 1, { name: 'again' }).with({ id: runIdFrom('order-19') });
    expect([again(), again()]).toEqual([1, 1]);

    const ids = recorder.runs.map((run) => run.id);
    expect([ids[0], ids[3]]).toEqual([id, runIdFrom('order-19')]);
    expect(new Set(ids).size).toBe(5);
    expect(treeOf(recorder.runs)).toEqual({ count: { count: { count: {} } }, again: {} });
    expect(lines).toEqual([
      'warn: traceable: expected a function with an `id` to be called once, got another call of "count"; its run gets a new id. Give each call its own id: fn.with({ id })(…).',
    ]);
  });

  test('is the own one of a function that has it', () => {
    const fn = Object.assign(() => 1, { with: () => 'mine' });
    expect((traceable(fn) as unknown as { with: () => string }).with()).toBe('mine');
  });

  test('tells what it does not know, and calls the function all the same', () => {
    record();
    const lines = told();
    const fn = traceable(() => 1) as unknown as { with(options: unknown): () => number };
    expect(fn.with({ nme: 'x', id: 'no uuid' })()).toBe(1);
    expect(fn.with(null)()).toBe(1);
    expect(lines.join('\n')).toContain('with: unknown option `nme`; left out.');
    expect(lines.join('\n')).toContain('with: expected `id` to be a UUID, or the result of runIdFrom(text); left out.');
  });
});

describe('a function that is wrapped already', () => {
  test('is traced once, with the later options over the earlier', () => {
    const recorder = record();
    const once = traceable(() => 1, { name: 'first', runType: 'tool', tags: ['a'] });
    const twice = traceable(traceable(once, { name: 'second', tags: ['b'] }));
    expect(twice()).toBe(1);
    expect(recorder.runs).toHaveLength(1);
    expect(recorder.runs[0]).toMatchObject({ name: 'second', run_type: 'tool', tags: ['a', 'b'] });
  });
});

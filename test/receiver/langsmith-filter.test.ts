import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { forAllAsync } from '../support/campaign.ts';
import { idOf, runOf, send } from './langsmith-reads.ts';
import { sendJson, start } from './wire.ts';

/** Values of a generated run. `feedback` is the score for the key `good`. */
interface Sample {
  readonly name: string;
  readonly run_type: string;
  readonly error: string | undefined;
  readonly tags: readonly string[];
  readonly plan: string | undefined;
  readonly seconds: number | undefined;
  readonly tokens: number | undefined;
  readonly thread: string | undefined;
  readonly score: number | undefined;
  readonly parent: number | undefined;
  readonly project: string;
}
type Filter = readonly [text: string, matches: (run: Sample, n: number) => boolean];

const NAMES = ['chat', 'chat (new)', 'a "b" OR c', 'user_1', '-x', 'is:root', '*'];
const optional = <Value>(...values: Value[]) => fc.option(fc.constantFrom(...values), { nil: undefined });
const sample: fc.Arbitrary<Sample> = fc.record({
  name: fc.constantFrom(...NAMES),
  run_type: fc.constantFrom('llm', 'chain'),
  error: optional('Error: away', 'TypeError: x'),
  tags: fc.subarray(['beta', 'new, one']),
  plan: optional('pro', 'free) OR (is:root'),
  seconds: optional(0, 1, 2, 10),
  tokens: optional(0, 5, 100),
  thread: optional('t1', 't 2'),
  score: optional(0, 0.5, 1),
  parent: fc.option(fc.nat(3), { nil: undefined }),
  project: fc.constantFrom('shop', 'lab'),
});

const START_MS = Date.UTC(2026, 10, 20, 7);
const timeOf = (seconds: number): string => new Date(START_MS + seconds * 1_000).toISOString();
const q = JSON.stringify;
const name = fc.constantFrom(...NAMES);
const number = fc.constantFrom(0, 0.5, 1, 2, 5, 10, 100);
const within = (value: number | undefined, matches: (value: number) => boolean) =>
  value !== undefined && matches(value);

const OPERATORS: readonly (readonly [string, (a: number, b: number) => boolean])[] = [
  ['eq', (a, b) => a === b],
  ['gt', (a, b) => a > b],
  ['gte', (a, b) => a >= b],
  ['lt', (a, b) => a < b],
  ['lte', (a, b) => a <= b],
];
const operator = fc.constantFrom(...OPERATORS);

const simple: fc.Arbitrary<Filter> = fc.oneof(
  name.map((text): Filter => [`eq(name, ${q(text)})`, (run) => run.name === text]),
  name.map((text): Filter => [`neq(name, ${q(text)})`, (run) => run.name !== text]),
  fc
    .tuple(name, name)
    .map(([a, b]): Filter => [`in(name, [${q(a)}, ${q(b)}])`, (run) => run.name === a || run.name === b]),
  fc.constantFrom<Filter>(
    ['like(name, "chat%")', (run) => run.name.startsWith('chat')],
    ['like(name, "%)")', (run) => run.name.endsWith(')')],
    ['like(name, "%b%")', (run) => run.name.includes('b')],
    ['like(name, "%r\\_1")', (run) => run.name.endsWith('r_1')],
    ["eq(run_type, 'llm')", (run) => run.run_type === 'llm'],
    ['eq(error, null)', (run) => run.error === undefined],
    ['neq(error, null)', (run) => run.error !== undefined],
    ['like(error, "%away%")', (run) => run.error?.includes('away') === true],
    ['eq(status, "error")', (run) => run.error !== undefined],
    ['eq(status, "pending")', (run) => run.error === undefined && run.seconds === undefined],
    ['has(tags, "new, one")', (run) => run.tags.includes('new, one')],
    ['in(tags, ["beta", "none"])', (run) => run.tags.includes('beta')],
    ['eq(is_root, true)', (run) => run.parent === undefined],
    ['eq(parent_run_id, null)', (run) => run.parent === undefined],
    ['neq(is_root, true)', (run) => run.parent !== undefined],
    ['and(eq(metadata_key, "plan"))', (run) => run.plan !== undefined],
    ['and(eq(metadata_key, "plan"), eq(metadata_value, "free) OR (is:root"))', (run) => run.plan?.[0] === 'f'],
    ['and(eq(metadata_key, "plan"), neq(metadata_value, "pro"))', (run) => run.plan?.[0] === 'f'],
    [`has(metadata, '{"plan": "pro"}')`, (run) => run.plan === 'pro'],
    ['eq(thread_id, "t 2")', (run) => run.thread === 't 2'],
    ['and(eq(feedback_key, "good"))', (run) => run.score !== undefined],
    ['and(eq(feedback_key, "bad"))', () => false],
  ),
  fc
    .tuple(operator, number)
    .map(([[sign, holds], n]): Filter => [`${sign}(latency, ${n})`, (run) => within(run.seconds, (s) => holds(s, n))]),
  fc.constant<Filter>(['gt(latency, "500ms")', (run) => within(run.seconds, (s) => s > 0.5)]),
  fc
    .tuple(operator, number)
    .map(
      ([[sign, holds], n]): Filter => [
        `${sign}(total_tokens, ${n})`,
        (run) => within(run.tokens, (tokens) => holds(tokens, n)),
      ],
    ),
  fc
    .tuple(operator, number)
    .map(
      ([[sign, holds], n]): Filter => [
        `and(eq(feedback_key, "good"), ${sign}(feedback_score, ${n}))`,
        (run) => within(run.score, (score) => holds(score, n)),
      ],
    ),
);

const nested: fc.Arbitrary<Filter> = fc.letrec<{ filter: Filter }>((tie) => {
  const some = fc.array(tie('filter'), { minLength: 1, maxLength: 3 });
  return {
    filter: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      simple,
      some.map(
        (all): Filter => [
          `and(${all.map(([text]) => text).join(', ')})`,
          (run, n) => all.every(([, matches]) => matches(run, n)),
        ],
      ),
      some.map(
        (all): Filter => [
          `or(${all.map(([text]) => text).join(',')})`,
          (run, n) => all.some(([, matches]) => matches(run, n)),
        ],
      ),
      tie('filter').map(([text, matches]): Filter => [`not(${text})`, (run, n) => !matches(run, n)]),
    ),
  };
}).filter;

/** A filter at the top level, where times can be compared. */
const filter: fc.Arbitrary<Filter> = fc.oneof(
  nested,
  fc
    .tuple(operator, fc.nat(8), nested)
    .map(
      ([[sign, holds], at, [text, matches]]): Filter => [
        `and(${sign}(start_time, ${q(timeOf(at))}), ${text})`,
        (run, n) => holds(n, at) && matches(run, n),
      ],
    ),
);

test('a filter of LangSmith selects the runs that a scan of all runs selects', async () => {
  await forAllAsync(
    80,
    [fc.array(sample, { minLength: 1, maxLength: 8 }), fc.array(filter, { minLength: 8 })],
    async (given, filters) => {
      const runs = given.map((run, n) => ({ ...run, parent: rootBefore(given, n) }));
      const receiver = await start();
      await send(receiver.url, runs.map(recordOf));
      for (const [n, { score }] of runs.entries()) {
        if (score === undefined) continue;
        await sendJson(receiver, 'POST', '/feedback', { run_id: idOf(n), key: 'good', score });
      }
      for (const [text, matches] of filters) {
        const { status, body } = await sendJson(receiver, 'POST', '/runs/query', {
          id: runs.map((_, n) => idOf(n)),
          filter: text,
          select: ['id'],
          order: 'asc',
        });
        if (status === 422) {
          expect(body.detail?.[0]?.msg, text).toMatch(/a filter has at most|nested at most/);
          continue;
        }
        const expected = runs.flatMap((run, n) => (matches(run, n) ? [{ id: idOf(n) }] : []));
        expect([text, body.runs]).toEqual([text, expected]);
      }
      await receiver.close();
    },
  );
});

const recordOf = (run: Sample, n: number) => {
  const { name, run_type, error, tags, seconds, parent, project, plan, thread, tokens } = run;
  const metadata = {
    plan,
    thread_id: thread,
    ...(tokens !== undefined && { usage_metadata: { total_tokens: tokens } }),
  };
  const end = seconds === undefined ? undefined : timeOf(n + seconds);
  const fields = { name, run_type, error, tags, session_name: project, extra: { metadata } };
  return runOf(n, { ...fields, start_time: timeOf(n), end_time: end, dotted_order: undefined }, parent);
};

/** Only roots have children, and a child is in its parent's trace. */
function rootBefore(runs: readonly Sample[], n: number): number | undefined {
  const parent = runs[n]?.parent;
  return parent !== undefined && parent < n && runs[parent]?.parent === undefined ? parent : undefined;
}

describe('POST /runs/query', () => {
  const root = runOf(0, { name: 'root' });
  const runs = [root, runOf(1, { name: 'child' }, 0), runOf(2, { name: 'root', tags: ['x'] })];
  const ask = async (fields: object) => {
    const receiver = await start();
    await send(receiver.url, runs);
    return sendJson(receiver, 'POST', '/runs/query', { id: runs.map(({ id }) => id), order: 'asc', ...fields });
  };

  test.each<[object, readonly number[]]>([
    [{ trace_filter: 'eq(name, "root")' }, [0, 1, 2]],
    [{ trace_filter: 'has(tags, "x")' }, [2]],
    [{ trace_filter: 'eq(name, "child")' }, []],
    [{ tree_filter: 'eq(name, "child")' }, [0, 1]],
    [{ filter: 'eq(name, "root")', tree_filter: 'eq(name, "child")' }, [0]],
    [{ filter: 'and(search("child"), eq(is_root, false))' }, [1]],
    [{ end_time: runs[1]?.start_time }, [0]],
    [{ start_time: runs[1]?.start_time }, [1, 2]],
    [{ filter: null, session: null, limit: 1 }, [0]],
  ])('with %j returns the runs %j', async (fields, expected) => {
    const { body } = await ask({ ...fields, select: ['name'] });
    expect(body.runs).toMatchObject(expected.map((n) => ({ id: idOf(n) })));
  });

  test.each([
    ...['regex(name, "a.*")', 'gt(name, "a")', 'eq(end_time, "2026-01-01")', 'eq(name, "a", "b")', 'eq("a", name)'],
    ...['like(name, "a%b")', 'like(name, "a_b")', 'eq(name, null)', 'eq(status, "done")', 'eq(id, "1")'],
    ...['gt(latency, "1 is:root")', 'eq(latency, "1..9")'],
    ...['and(eq(feedback_key, "a"), eq(feedback_score, "0..1"))', 'gt(latency, "1) OR (is:root")'],
    ...['or(eq(name, "a"), gt(start_time, "2026-01-01"))', 'or(eq(name, "a"), search("b"))'],
    ...['gt(start_time, "yesterday")', 'eq(feedback_score, 1)'],
    ...['and(eq(feedback_key, "a"), eq(feedback_key, "b"))', 'and(eq(feedback_key, "a"), eq(feedback_value, "1"))'],
    ...['eq(metadata_value, "a")', 'has(metadata, "a")', 'in(name, [])', 'in(name, [["a"]])', 'and(name, "a")'],
    ...['not()', 'eq(name, "a"', 'eq(name, "a"))', 'eq(name, "a") eq(name, "b")', 'eq(name "a")'],
    ...['eq(name, {"a": 1})', 'name:a', '"a"', `eq(name, "${'a'.repeat(4_000)}")`],
    ...[`${'not('.repeat(30)}eq(name, "a")${')'.repeat(30)}`, `${'['.repeat(3_900)}`],
  ])('refuses the filter %s', async (filter) => {
    for (const field of ['filter', 'trace_filter']) {
      const reply = await ask({ [field]: filter });
      expect(reply).toMatchObject({ status: 422, body: { detail: [{ type: 'value' }] } });
    }
  });

  test.each<[object, string]>([
    [{ reference_example: [idOf(1)] }, 'reference_example'],
    [{ search_filter: 'a' }, 'search_filter'],
    [{ execution_order: 2 }, 'execution_order'],
    [{ order: 'random' }, 'order'],
    [{ cursor: 'none' }, 'cursor'],
    [{ session: ['shop'] }, 'session'],
    [{ start_time: 'now' }, 'start_time'],
    [{ limit: 0 }, 'limit'],
    [{ limit: '5' }, 'limit'],
    [{ trace: 'all' }, 'trace'],
    [{ id: undefined, is_root: true }, 'trace'],
    [{ trace_filter: 'gt(start_time, "2026-01-01")' }, 'filter'],
  ])('refuses %j', async (fields, field) => {
    const { status, body } = await ask(fields);
    expect([status, body.detail?.[0]?.loc.slice(0, 2)]).toEqual([422, ['body', field]]);
  });
});

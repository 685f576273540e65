import { WriteStream } from 'node:tty';
import { describe, expect, it, vi } from 'vitest';
import { columnWidth } from '#src/cli/terminal-text.ts';
import { drawTree as drawOutlines, type TreeOptions, treeOptionsFor } from '#src/cli/tree.ts';
import type { RunOutline } from '#src/receiver/domain/run-view.ts';
import type { EndReason, RunRecord } from '#src/run/record.ts';
import { isoTimestamp } from '#src/run/time.ts';
import { makeOpenRun, makeRun, outlined } from '../support/records.ts';

type Drawn = RunRecord & Pick<RunOutline, 'same_call_as' | 'recorded_by'>;

function lines(runs: readonly Drawn[], options: Partial<TreeOptions> = {}): string[] {
  const sorted = runs.toSorted((a, b) => (a.dotted_order < b.dotted_order ? -1 : 1));
  const paint: TreeOptions['paint'] = (_, text) => text;
  const outlines = sorted.map((run) => {
    const { same_call_as, recorded_by } = run;
    return { ...outlined(run), ...(same_call_as && { same_call_as }), ...(recorded_by && { recorded_by }) };
  });
  return drawOutlines(outlines, { widthColumns: 120, paint, ...options }).split('\n');
}

const endedBy = (runspan_end_reason: EndReason) => ({ extra: { runspan_end_reason } });

describe('a trace is drawn', () => {
  it('with child runs sorted by start', () => {
    const runs = [
      makeRun('1.2', 'answer', { run_type: 'llm' }),
      makeRun('1.1.1', 'embed', { run_type: 'embedding' }),
      makeRun('1', 'ask'),
      makeRun('1.2.1', 'parse', { run_type: 'parser' }),
      makeRun('1.1', 'retrieve', { run_type: 'retriever' }),
      makeRun('1.1.2', 'rank', { run_type: 'tool' }),
    ];
    expect(lines(runs)).toEqual([
      'ask · chain · 12 ms',
      '├─ retrieve · retriever · 12 ms',
      '│  ├─ embed · embedding · 12 ms',
      '│  └─ rank · tool · 12 ms',
      '└─ answer · llm · 12 ms',
      '   └─ parse · parser · 12 ms',
    ]);
  });

  it('with the tokens and the cost of all calls at the root, if there are several', () => {
    const call = (position: string, usage: object) =>
      makeRun(position, 'call', { run_type: 'llm', outputs: { usage_metadata: usage } });
    const one = { input_tokens: 10, output_tokens: 2, total_cost: 0.5 };
    const [first, second] = [call('1.1', one), call('1.2.1', { ...one, input_tokens: 20 })];
    const rootOf = (...runs: readonly Drawn[]) => lines([makeRun('1', 'ask'), makeRun('1.2', 'step'), ...runs])[0];
    expect(rootOf(first)).toBe('ask · chain · 12 ms');
    expect(rootOf(first, second)).toBe('ask · chain · 12 ms · 34 tokens (30 in, 4 out) · $1.00');
    const unpriced = call('1.3', { input_tokens: 1, output_tokens: 1 });
    expect(rootOf(first, second, unpriced)).toBe('ask · chain · 12 ms · 36 tokens (31 in, 5 out)');
    // The root reports the sum itself.
    const counted = makeRun('1', 'ask', { outputs: { usage_metadata: { total_tokens: 34 } } });
    expect(lines([counted, first, call('1.3', one)])[0]).toBe('ask · chain · 12 ms · 34 tokens');
    // Two traces have no common root.
    expect(lines([call('1', one), call('2', one)])).toEqual(
      Array(2).fill('call · llm · 12 ms · 12 tokens (10 in, 2 out) · $0.500'),
    );
  });

  it('with the tools that only the messages of model calls tell of, which are not counted as runs', () => {
    const messages = [
      { role: 'tool', tool_call_id: 'a', content: 'Sent' },
      { role: 'tool', tool_call_id: 'b', content: 'Too old', status: 'error' },
    ];
    const tool_calls = [
      { id: 'a', name: 'lookup_order', args: { order: 1042 } },
      { id: 'b', name: 'issue_refund', args: { order: 1042 } },
    ];
    const runs = [
      makeRun('1', 'ask'),
      makeRun('1.1', 'call', { run_type: 'llm', outputs: { tool_calls } }),
      makeRun('1.2', 'step', { start_time: '2026-11-20T07:22:40.243000Z', end_time: '2026-11-20T07:22:40.300000Z' }),
      makeRun('1.2.1', 'call', {
        ...{ run_type: 'llm', inputs: { messages } },
        ...{ start_time: '2026-11-20T07:22:40.243000Z', end_time: '2026-11-20T07:22:40.300000Z' },
      }),
    ];
    expect(lines(runs)).toEqual([
      'ask · chain · 12 ms',
      '├─ call · llm · 12 ms',
      '├─ lookup_order · tool · ≤ 231 ms · from the messages',
      '├─ issue_refund · tool · ≤ 231 ms · from the messages · ✗ Too old',
      '└─ step · chain · 57 ms',
      '   └─ call · llm · 57 ms',
    ]);
    expect(lines(runs, { linesMax: 2 }).at(-1)).toBe('… and 2 more');
  });

  it('with tokens and the first line of errors', () => {
    const error = 'TypeError: no such tool\n    at call (a.js:1:1)\ncause: Error: deep';
    const usage_metadata = { input_tokens: 120, output_tokens: 45 };
    const runs = [
      makeRun('1', 'ask'),
      makeRun('1.1', 'call', { run_type: 'llm', outputs: { usage_metadata } }),
      makeRun('1.2', 'fail', { run_type: 'tool', error }),
      makeRun('1.3', 'fail late', { error: '\r\n\r\nTimeout\r\nat b' }),
    ];
    expect(lines(runs)).toEqual([
      'ask · chain · 12 ms',
      '├─ call · llm · 12 ms · 165 tokens (120 in, 45 out)',
      '├─ fail · tool · 12 ms · ✗ TypeError: no such tool',
      '└─ fail late · chain · 12 ms · ✗ Timeout',
    ]);
  });

  it('with a notice for cancelled and interrupted runs, with and without an error', () => {
    const runs = [
      makeRun('1', 'ask'),
      makeRun('1.1', 'left', { ...endedBy('cancelled'), outputs: { usage_metadata: { total_tokens: 7 } } }),
      makeRun('1.2', 'aborted', { ...endedBy('cancelled'), error: 'AbortError: gone' }),
      makeRun('1.3', 'dropped', { ...endedBy('interrupted'), error: 'Interrupted: collected' }),
    ];
    expect(lines(runs)).toEqual([
      'ask · chain · 12 ms',
      '├─ left · chain · 12 ms · 7 tokens · cancelled',
      '├─ aborted · chain · 12 ms · cancelled · ✗ AbortError: gone',
      '└─ dropped · chain · 12 ms · interrupted · ✗ Interrupted: collected',
    ]);
  });

  it('with open runs', () => {
    expect(lines([makeOpenRun('1', 'ask')])).toEqual(['ask · chain · not ended']);
  });

  it('with several roots, and with a note if a parent is missing', () => {
    expect(
      lines([makeRun('2', 'second'), makeRun('3.1', 'lost'), makeRun('3.1.1', 'with it'), makeRun('1', 'first')]),
    ).toEqual([
      'first · chain · 12 ms',
      'second · chain · 12 ms',
      'lost · chain · 12 ms · parent missing',
      '└─ with it · chain · 12 ms',
    ]);
  });

  it('with the records of one call on the line of the outermost record', () => {
    const sameAs = (id: string) => ({ run_type: 'llm', same_call_as: id });
    const runs = [
      makeRun('1', 'ask'),
      makeRun('1.1', 'chat', { run_type: 'llm' }),
      makeRun('1.1.1', 'POST'),
      { ...makeRun('1.1.1.1', 'openai'), ...sameAs('1.1'), recorded_by: 'wrapOpenAI' },
      { ...makeRun('1.1.1.1.1', 'fetch'), ...sameAs('1.1'), recorded_by: 'fetch' },
      makeRun('1.1.1.1.1.1', 'log'),
      { ...makeRun('1.2', 'beside'), ...sameAs('1.1') },
      { ...makeRun('1.3', 'other'), ...sameAs('elsewhere') },
    ];
    expect(lines(runs)).toEqual([
      'ask · chain · 12 ms',
      '├─ chat · llm · 12 ms · +3 records of the same call (wrapOpenAI, fetch)',
      '│  ├─ POST · chain · 12 ms',
      '│  └─ log · chain · 12 ms',
      '└─ other · llm · 12 ms',
    ]);
  });

  it('with each run once if parents form a cycle', () => {
    const ring = [
      makeRun('1', 'a', { parent_run_id: '2' }),
      makeRun('2', 'b', { parent_run_id: '1' }),
      makeRun('3', 'self', { parent_run_id: '3' }),
      makeRun('4', 'beside', { parent_run_id: '2' }),
    ];
    expect(lines(ring)).toEqual([
      'a · chain · 12 ms · parent missing',
      '└─ b · chain · 12 ms',
      '   └─ beside · chain · 12 ms',
      'self · chain · 12 ms · parent missing',
    ]);
  });

  it('without control characters in names, types and errors', () => {
    const run = makeRun('1', 'a\u001b[2Jb\nc', { run_type: '\u009b31m', error: '\u001b]0;owned\u0007: \u202eno' });
    expect(lines([run])).toEqual(['a\\x1b[2Jb\\nc · \\x9b31m · 12 ms · ✗ \\x1b]0;owned\\x07: \\u202eno']);
  });
});

it.each<[unknown, string]>([
  [{ input_tokens: 120, output_tokens: 45, total_tokens: 165 }, ' · 165 tokens (120 in, 45 out)'],
  [{ total_tokens: 165 }, ' · 165 tokens'],
  [{ input_tokens: 120 }, ' · 120 tokens in'],
  [{ output_tokens: 0 }, ' · 0 tokens out'],
  [{ input_tokens: 1 }, ' · 1 token in'],
  [
    { input_tokens: 200, output_tokens: 1, total_cost: 0.012, input_token_details: { cache_read: 179 } },
    ' · 201 tokens (200 in, 1 out) · $0.0120 · 90 % cached',
  ],
  [
    { input_tokens: 2, total_cost: 12.345, input_token_details: { cache_read: 2 } },
    ' · 2 tokens in · $12.35 · 100 % cached',
  ],
  [{ total_cost: 0 }, ' · $0'],
  [{}, ''],
])('token counts, cost and cached share of the usage %j are formatted as "%s"', (usage_metadata, text) => {
  const run = makeRun('1', 'call', { outputs: { usage_metadata } });
  expect(lines([run])).toEqual([`call · chain · 12 ms${text}`]);
});

describe('a long line', () => {
  it('is shortened in the name', () => {
    const name = 'summarise every document';
    expect(lines([makeRun('1', name)], { widthColumns: 40 })).toEqual(['summarise every document · chain · 12 ms']);
    expect(lines([makeRun('1', name)], { widthColumns: 39 })).toEqual(['summarise every docume… · chain · 12 ms']);
  });

  it('is shortened in the error first', () => {
    const run = makeRun('1', 'call the model', { error: 'RangeError: the context is longer than the model takes' });
    expect(lines([run], { widthColumns: 60 })).toEqual([
      'call the model · chain · 12 ms · ✗ RangeError: the context …',
    ]);
  });

  it('counts two columns for wide characters', () => {
    const [line = ''] = lines([makeRun('1', '検索'.repeat(40))], { widthColumns: 60 });
    expect(line).toMatch(/^(検索)+検?… · chain · 12 ms$/);
    expect(columnWidth(line)).toBeGreaterThan(57);
    expect(columnWidth(line)).toBeLessThanOrEqual(60);
  });

  it('is drawn fast even if the name and the error are long', () => {
    const [line = ''] = lines([makeRun('1', 'n'.repeat(10_000_000), { error: 'e'.repeat(10_000_000) })]);
    expect(columnWidth(line)).toBe(120);
  });
});

describe('a large trace', () => {
  it('leaves half of the line for deeply nested runs', () => {
    const runs = Array.from({ length: 5_000 }, (_, depth) => {
      const parent = depth === 0 ? {} : { parent_run_id: String(depth - 1) };
      return makeRun('1', 'deep', { ...parent, id: String(depth), dotted_order: `1${'.1'.repeat(depth)}` });
    });
    const drawn = lines(runs, { widthColumns: 60 });
    expect(drawn[999]).toBe(`…${' '.repeat(26)}└─ deep · chain · 12 ms`);
    expect(drawn[1_000]).toBe('… and 4000 more');
  });
});

describe('equal siblings', () => {
  const children = (count: number, changes: (index: number) => Partial<RunRecord> = () => ({}), name = 'call') =>
    Array.from({ length: count }, (_, index) => makeRun(`1.${1e3 + index}`, name, changes(index)));
  const ended = (ms: number) => ({ end_time: isoTimestamp(Date.UTC(2026, 10, 20, 7, 22, 40, ms) * 1_000) });
  const folded = (runs: readonly Drawn[], options: Partial<TreeOptions> = {}) =>
    lines([makeRun('1', 'ask'), ...runs], { isFolded: true, ...options }).slice(1);

  it('share a line with their number, shortest and longest duration, and the sum of tokens and costs', () => {
    const runs = children(57, (index) => ({
      run_type: 'llm',
      ...ended([900, 30, 1_250][index % 3] ?? 0),
      outputs: { usage_metadata: { input_tokens: 10, output_tokens: 2, total_cost: 0.01 } },
    }));
    expect(folded(runs)).toEqual(['└─ call · llm · × 57 · 30 ms – 1.25 s · 684 tokens (570 in, 114 out) · $0.570']);
  });

  it.each([
    [2, ['├─ call · chain · 12 ms', '└─ call · chain · 12 ms']],
    [3, ['└─ call · chain · × 3 · 12 ms']],
    [4, ['└─ call · chain · × 4 · 12 ms']],
  ])('are folded if there are at least three: %i', (count, expected) => {
    expect(folded(children(count))).toEqual(expected);
  });

  it('are not folded by default', () => {
    expect(lines([makeRun('1', 'ask'), ...children(3)])).toHaveLength(4);
  });

  it.each<[string, (index: number) => Partial<RunRecord>]>([
    ['a failure', (index) => (index === 3 ? { error: 'Error: no' } : {})],
    ['a cancelled run', (index) => (index === 3 ? endedBy('cancelled') : {})],
    ['another type', (index) => (index === 3 ? { run_type: 'tool' } : {})],
    ['another name', (index) => (index === 3 ? { name: 'other' } : {})],
    ['another model', (index) => (index === 3 ? { extra: { metadata: { ls_model_name: 'large' } } } : {})],
  ])('have %s between them on its own line', (_, changes) => {
    const drawn = folded(children(7, changes));
    expect(drawn).toHaveLength(3);
    expect([drawn[0], drawn[2]]).toEqual(['├─ call · chain · × 3 · 12 ms', '└─ call · chain · × 3 · 12 ms']);
  });

  it('are never failures, cancelled, interrupted or open runs', () => {
    const open = children(3).map(({ end_time: _, ...run }) => run);
    const all = [
      children(3, () => ({ error: 'Error: no' })),
      children(3, () => endedBy('cancelled')),
      children(3, () => endedBy('interrupted')),
      open,
    ];
    for (const runs of all) expect(folded(runs)).toHaveLength(3);
  });

  it('have equal runs below them, which share lines too', () => {
    const steps = Array.from({ length: 4 }, (_, index) => [
      makeRun(`1.${index}`, 'step'),
      makeRun(`1.${index}.1`, 'plan', ended(index + 10)),
      ...[2, 3, 4].map((place) => makeRun(`1.${index}.${place}`, 'call')),
    ]);
    expect(folded(steps.flat())).toEqual([
      '└─ step · chain · × 4 · 12 ms',
      '   ├─ plan · chain · × 4 · 10 ms – 13 ms',
      '   └─ call · chain · × 12 · 12 ms',
    ]);
    const failed = makeRun('1.1.5', 'call', { error: 'Error: no' });
    const drawn = folded([...steps.flat(), failed]);
    expect(drawn.filter((line) => line.includes('step'))).toHaveLength(4);
    expect(drawn.filter((line) => line.includes('✗ Error: no'))).toHaveLength(1);
  });

  it('count the further records of their calls', () => {
    const further = children(3).map(({ id }) => ({ ...makeRun(`${id}.1`, 'fetch'), same_call_as: id }));
    expect(folded([...children(3), ...further])).toEqual([
      '└─ call · chain · × 3 · 12 ms · +3 records of the same call',
    ]);
    expect(folded([...children(3), ...further.slice(0, 1)])).toHaveLength(3);
  });

  it('are found in deep and wide traces without delay', () => {
    const deep = Array.from({ length: 20_000 }, (_, depth) =>
      makeRun('1', 'deep', {
        id: `d${depth}`,
        parent_run_id: depth === 0 ? '1' : `d${depth - 1}`,
        dotted_order: `1.${1e6 + depth}`,
      }),
    );
    const wide = Array.from({ length: 20_000 }, (_, index) => makeRun(`1.${1e6 + index}`, 'wide'));
    const drawn = folded([...deep, ...wide], { linesMax: 40 });
    expect(drawn.at(-1)).toBe('… and 39961 more');
    expect(folded(wide)).toEqual(['└─ wide · chain · × 20000 · 12 ms']);
  });
});

describe('a limit of lines', () => {
  const alternating = (count: number) =>
    Array.from({ length: count }, (_, index) => makeRun(`1.${1e3 + index}`, index % 2 === 0 ? 'a' : 'b'));

  it.each([
    [40, { linesMax: 40 }, '└─ a · chain · 12 ms'],
    [41, { linesMax: 40 }, '… and 1 more'],
    [1_000, {}, '└─ a · chain · 12 ms'],
    [1_001, {}, '… and 1 more'],
  ])('for a trace of %i runs with %j ends with "%s"', (count, options, last) => {
    const drawn = lines([makeRun('1', 'ask'), ...alternating(count - 1)], options);
    expect([drawn.length, drawn.at(-1)]).toEqual([count, last]);
  });

  it('counts the runs of folded lines, and those that have not succeeded', () => {
    const runs = [
      makeRun('1', 'ask'),
      makeRun('1.1', 'shown', { error: 'Error: no' }),
      makeRun('1.2', 'hidden', { error: 'Error: no' }),
      ...['1.3', '1.4', '1.5'].map((place) => makeRun(place, 'equal')),
      makeRun('1.6', 'left', endedBy('cancelled')),
      makeRun('1.7', 'hidden'),
      makeRun('1.7.1', 'below', { error: 'Error: no' }),
      makeOpenRun('1.8', 'open'),
    ];
    expect(lines(runs, { isFolded: true, linesMax: 2 }).at(-1)).toBe(
      '… and 8 more · 1 pending · 2 failed · 1 cancelled',
    );
  });
});

it('colours are added after shortening and escaping', () => {
  const runs = [makeRun('1', 'ask', endedBy('cancelled')), makeRun('1.1', 'fail\u001b', { error: 'Error: no' })];
  expect(lines(runs, { paint: (ink, text) => (text === '' ? '' : `<${ink}>${text}</>`) })).toEqual([
    '<name>ask</><glyph> · </><type>chain</><glyph> · </><detail>12 ms</><glyph> · </><notice>cancelled</>',
    '<glyph>└─ </><failure>fail\\x1b</><glyph> · </><type>chain</><glyph> · </><detail>12 ms</><glyph> · </><failure>✗ Error: no</>',
  ]);
});

it.each<[string, Parameters<typeof treeOptionsFor>[0], number]>([
  ['a terminal', { write: () => true, isTTY: true, columns: 80 }, 80],
  ['a terminal without a width', { write: () => true, isTTY: true, columns: 0 }, 200],
  ['a file or a pipe', { write: () => true }, 200],
])('the width fits %s', (_, stream, widthColumns) => {
  expect(treeOptionsFor(stream).widthColumns).toBe(widthColumns);
});

const FILE: Parameters<typeof treeOptionsFor>[0] = { write: () => true };
// Node's check of the variables, without a file descriptor.
const { hasColors, getColorDepth } = WriteStream.prototype;
const TERMINAL = Object.assign(Object.create(FILE), { isTTY: true, hasColors, getColorDepth });

it.each<[output: typeof FILE, variables: Record<string, string>, isColoured: boolean]>([
  [TERMINAL, {}, true],
  [TERMINAL, { NO_COLOR: '1' }, false],
  [TERMINAL, { NO_COLOR: '0' }, false],
  [TERMINAL, { NO_COLOR: '' }, true],
  [TERMINAL, { FORCE_COLOR: '0' }, false],
  [TERMINAL, { FORCE_COLOR: 'false' }, false],
  [TERMINAL, { FORCE_COLOR: '' }, true],
  [TERMINAL, { TERM: 'dumb' }, false],
  [FILE, {}, false],
  [FILE, { NO_COLOR: '' }, false],
  [FILE, { FORCE_COLOR: '' }, false],
  [FILE, { FORCE_COLOR: '1' }, true],
  [FILE, { FORCE_COLOR: 'true', NO_COLOR: '1' }, true],
])('colours are chosen by the environment: %o, %j: %s', (output, variables, isColoured) => {
  for (const name of ['NO_COLOR', 'FORCE_COLOR', 'NODE_DISABLE_COLORS', 'CI', 'TMUX', 'COLORTERM'])
    vi.stubEnv(name, undefined);
  vi.stubEnv('TERM', 'xterm');
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
  const { paint } = treeOptionsFor(output);
  expect(paint('failure', 'no')).toBe(isColoured ? '\u001b[31mno\u001b[39m' : 'no');
  expect(paint('glyph', '')).toBe('');
});

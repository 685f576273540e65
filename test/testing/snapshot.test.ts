import { homedir } from 'node:os';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { RunRecord } from '#src/run/record.ts';
import { startRun } from '#src/run/start-run.ts';
import { recordRuns, snapshotOf } from '#src/testing.ts';
import { makeRun } from '../support/records.ts';

const at = (second: number): string => `2026-11-20T07:22:4${second}.000000Z`;

/** Sets all fields of runs, with values that differ between executions. */
function program() {
  using recorder = recordRuns();
  const outer = startRun({ name: 'outer', inputs: { z: 1, a: { d: 1, c: 2 } }, tags: ['z', 'a'], project: 'evals' });
  const inner = outer.child({
    name: 'inner',
    runType: 'llm',
    metadata: { parent: outer.id, place: outer.dottedOrder },
  });
  inner.event('token', { text: 'Hi' });
  inner.event('last');
  inner.attach('image', new Uint8Array(3), 'image/png');
  inner.end({ link: `see ${inner.id.toUpperCase()} below ${outer.id}.` });
  outer.child({ name: 'inner' }).fail(new Error('no\nway', { cause: new Error('deep') }));
  outer.child({ name: 'open' });
  outer.end({ failed: new TypeError('caught') });
  return { outer, inner, runs: recorder.runs };
}

describe('a snapshot', () => {
  test('contains the fields of the runs that are equal in each execution', () => {
    expect(snapshotOf(program().runs)).toEqual([
      {
        name: 'outer',
        runType: 'chain',
        project: 'evals',
        inputs: { a: { c: 2, d: 1 }, z: 1 },
        outputs: { failed: { name: 'TypeError', message: 'caught', stack: 'TypeError: caught' } },
        tags: ['z', 'a'],
        children: [
          {
            name: 'inner',
            runType: 'llm',
            outputs: { link: 'see [id of inner] below [id of outer].' },
            events: [{ name: 'token', data: { text: 'Hi' } }, { name: 'last' }],
            metadata: { parent: '[id of outer]', place: '[order of outer]' },
            tags: ['z', 'a'],
            attachments: [{ name: 'image', mimeType: 'image/png', size: 3 }],
          },
          { name: 'inner', runType: 'chain', error: 'Error: no', tags: ['z', 'a'] },
          { name: 'open', runType: 'chain', open: true, tags: ['z', 'a'] },
        ],
      },
    ]);
  });

  test('is the same text in each execution', () => {
    const [first, second] = [program(), program()];
    expect(first.outer.id).not.toBe(second.outer.id);
    expect(JSON.stringify(snapshotOf(first.runs))).toBe(JSON.stringify(snapshotOf(second.runs)));
  });

  test('has the name first, child runs last, and sorted keys in payloads, including `__proto__`', () => {
    const inputs = JSON.parse('{"b":{"z":1,"__proto__":2},"a":[{"d":1,"c":2}]}');
    const runs = [makeRun('1', 'outer', { inputs, outputs: { ok: true } }), makeRun('1.1', 'inner')];
    expect(JSON.stringify(snapshotOf(runs))).toBe(
      '[{"name":"outer","runType":"chain","inputs":{"a":[{"c":2,"d":1}],"b":{"__proto__":2,"z":1}},"outputs":{"ok":true},' +
        '"children":[{"name":"inner","runType":"chain"}]}]',
    );
  });

  test('accepts a recorder, a list, one run, and runs of a receiver', () => {
    using recorder = recordRuns();
    startRun({ name: 'a' }).end();
    const expected = [{ name: 'a', runType: 'chain' }];
    for (const recorded of [recorder, recorder.runs, recorder.run('a')]) expect(snapshotOf(recorded)).toEqual(expected);
    const stored = { ...makeRun('1', 'a'), attachments: [{ name: 'image', mime_type: 'image/png', size: 3 }] };
    expect(snapshotOf([stored])[0]?.attachments).toEqual([{ name: 'image', mimeType: 'image/png', size: 3 }]);
  });

  test('contains the project where it changes', () => {
    const runs = ['default', 'default', 'other', 'other'].map((session_name, depth) =>
      makeRun(['1', '1.1', '1.1.1', '1.1.1.1'][depth] as string, `${depth}`, { session_name }),
    );
    expect(JSON.stringify(snapshotOf(runs)).match(/"name":"\d"|"project":"\w+"/g)).toEqual([
      '"name":"0"',
      '"name":"1"',
      '"name":"2"',
      '"project":"other"',
      '"name":"3"',
    ]);
  });

  test('marks a run whose parent is missing', () => {
    expect(snapshotOf([makeRun('1.1', 'b')])).toEqual([{ name: 'b', runType: 'chain', orphan: true }]);
  });

  test('accepts a chain of runs longer than the stack allows', () => {
    const chain = Array.from({ length: 20_000 }, (_, depth) =>
      makeRun(`${depth}`, 'link', depth === 0 ? {} : { parent_run_id: `${depth - 1}` }),
    );
    let depth = 0;
    for (let run = snapshotOf(chain)[0]; run !== undefined; run = run.children?.[0]) depth++;
    expect(depth).toBe(20_000);
  });

  test('rejects an unknown option', () => {
    const message = 'Expected the options to contain only ordered, got `order`';
    const refusal = expect.objectContaining({ code: 'RUNSPAN_INVALID_OPTION', message });
    expect(() => snapshotOf([], { order: true } as never)).toThrow(refusal);
  });
});

const contents: readonly (readonly [name: string, inputs: Record<string, unknown>])[] = [
  ['b', {}],
  ['a', { q: 2 }],
  ['a', { q: 1 }],
];
const sorted = [
  { name: 'a', runType: 'chain', inputs: { q: 1 } },
  { name: 'a', runType: 'chain', inputs: { q: 2 } },
  { name: 'b', runType: 'chain' },
];

test.each([contents, contents.toReversed()])('siblings are sorted by name and content: %j %j %j', (...shuffled) => {
  const below = (startOf: (index: number) => string, ordered: boolean) => {
    const runs = shuffled.map(([name, inputs], index) =>
      makeRun(`1.${index}`, name, { inputs, start_time: startOf(index) }),
    );
    return snapshotOf([makeRun('1', 'top'), ...runs], { ordered })[0]?.children;
  };
  // Runs that started in the same microsecond, and all runs without an order.
  expect(below(() => at(0), true)).toEqual(sorted);
  expect(below(at, false)).toEqual(sorted);
});

describe('text in a snapshot', () => {
  const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
  const [span, other] = ['00f067aa0ba902b7', '53995c3f42cd8ad8'];
  const uuid = (last: number) => `018f4a2e-5b1c-7d3e-9f00-00000000000${last}`;
  const textOf = (text: string, ...others: RunRecord[]) =>
    snapshotOf([...others, makeRun(uuid(9), 'teller', { inputs: { text } })]).find(({ name }) => name === 'teller')
      ?.inputs?.text;

  const searches = [1, 2].map((last) => makeRun(uuid(last), 'search', { start_time: at(last) }));
  const ids = `${uuid(5)} 1234567890123456 2026-11-20T07:22:40.000Z 20261120T072240000000Z${uuid(5)} ${trace} ${span}`;

  test.each([
    ['the ids of runs with the same name', `${uuid(2)}, ${uuid(1)}`, '[id of search #2], [id of search]'],
    ['ids, numbers and times of the application', ids, ids],
    [
      'a dotted order in a header',
      `runspan-trace: 20261120T072240000000Z${uuid(4)}.20261120T072240000001Z${uuid(1)}.`,
      'runspan-trace: [order of search].',
    ],
  ])('is steady with %s', (_, text, expected) => {
    expect(textOf(text, ...searches)).toBe(expected);
  });

  test('has no ids of spans, also of spans in other processes', () => {
    const otel = {
      trace_id: trace,
      span_id: span,
      parent_span_id: other,
      links: [{ trace_id: trace, span_id: other }],
    };
    const spanned = makeRun(uuid(1), 'GET /', { trace_id: uuid(1), extra: { metadata: { otel } } });
    expect(textOf(`00-${trace}-${span}-01`, spanned)).toBe('00-[trace id of GET /]-[span id of GET /]-01');
    expect(snapshotOf([spanned])[0]?.metadata).toEqual({
      otel: {
        trace_id: '[trace id of GET /]',
        span_id: '[span id of GET /]',
        parent_span_id: '[span id of no recorded run]',
        links: [{ trace_id: '[trace id of GET /]', span_id: '[span id of no recorded run]' }],
      },
    });
  });

  test('has no ids of a missing parent', () => {
    const orphan = makeRun(uuid(1), 'b', {
      parent_run_id: uuid(2),
      trace_id: uuid(3),
      inputs: { a: uuid(2), b: uuid(3) },
    });
    expect(snapshotOf([orphan])[0]?.inputs).toEqual({ a: '[id of no recorded run]', b: '[id of no recorded run]' });
  });

  test('has no ids in keys', () => {
    const run = makeRun(uuid(1), 'a', { inputs: { [uuid(1)]: 1 } });
    expect(snapshotOf([run])[0]?.inputs).toEqual({ '[id of a]': 1 });
  });

  test.each([
    ['a stack', 'Error: no\n    at f (file:///srv/app.js:1:2)\n    at async /srv/app.js:3:4', 'Error: no'],
    [
      'frames without a place',
      'E\n    at new Promise (<anonymous>)\n    at async Promise.all (index 0)\n    at f (native)\nCaused by: F',
      'E\nCaused by: F',
    ],
    ['lines of a poem', 'the cat\n  at home', 'the cat\n  at home'],
    ['the folder of the process', `open '${process.cwd()}/a.txt'`, "open '[cwd]/a.txt'"],
    ['its URL', `${pathToFileURL(process.cwd()).href}/a.txt`, '[cwd]/a.txt'],
    ['the folder of the user', `${homedir()}/.npmrc`, '[home]/.npmrc'],
    ['a longer name', `${process.cwd()}-2/a ${homedir()}by`, `${process.cwd()}-2/a ${homedir()}by`],
  ])('is steady with %s', (_, text, expected) => {
    expect(textOf(text)).toBe(expected);
  });
});

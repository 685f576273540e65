import { describe, expect, test } from 'vitest';
import { type EncodedRun, isFilled, mainJson, wholeJson } from '../../src/run/encoded-run.ts';
import { makeRun } from '../support/encoded-run.ts';

const ID = '019a9f3c-1a00-7000-8000-000000000001';
const PARENT = '019a9f3c-1a00-7000-8000-000000000000';

/** A root with ids and a time that are known. */
const answer = (fields: Partial<EncodedRun> = {}): EncodedRun =>
  makeRun({
    id: ID,
    dottedOrder: `20261120T072240000000Z${ID}`,
    startTime: '2026-11-20T07:22:40.000000Z',
    project: 'chat',
    name: 'answer',
    ...fields,
  });

/** The fields of every run, up to the bracket that closes it. */
const HEAD =
  `{"id":"${ID}","trace_id":"${ID}","name":"answer","start_time":"2026-11-20T07:22:40.000000Z","run_type":"chain",` +
  `"dotted_order":"20261120T072240000000Z${ID}","session_name":"chat"`;

describe('the main part', () => {
  test('of a root that has nothing else', () => {
    expect(mainJson(answer(), true)).toBe(`${HEAD}}`);
  });

  test('of a child names its parent', () => {
    const run = answer({ traceId: PARENT, parentRunId: PARENT });
    expect(JSON.parse(mainJson(run, false))).toMatchObject({ id: ID, trace_id: PARENT, parent_run_id: PARENT });
  });

  test('has tags, metadata and runtime, and no payload', () => {
    const run = answer({
      tags: ['a', '"b"'],
      metadata: new Map([
        ['user', '"x"'],
        ['"quoted"', '{"n":1}'],
      ]),
      runtime: '{"sdk":"runspan"}',
      inputs: '{"question":1}',
      outputs: '{"answer":2}',
      events: '[{"name":"token"}]',
    });
    expect(mainJson(run, true)).toBe(
      `${HEAD},"tags":["a","\\"b\\""],"extra":{"metadata":{"user":"x","\\"quoted\\"":{"n":1}},"runtime":{"sdk":"runspan"}}}`,
    );
  });

  test.each<[string, Partial<EncodedRun>, string]>([
    ['neither', {}, ''],
    ['metadata alone', { metadata: new Map([['a', '1']]) }, ',"extra":{"metadata":{"a":1}}'],
    ['runtime alone', { runtime: '{}' }, ',"extra":{"runtime":{}}'],
    ['no tags', { tags: [] }, ',"tags":[]'],
  ])('with %s', (_, fields, expected) => {
    expect(mainJson(answer(fields), true)).toBe(`${HEAD}${expected}}`);
  });

  test('has the end only when it is told of the end', () => {
    const run = answer({ endTime: '2026-11-20T07:22:41.000000Z', error: 'Error: "no"\n    at x' });
    expect(mainJson(run, false)).toBe(`${HEAD}}`);
    expect(mainJson(run, true)).toBe(
      `${HEAD},"end_time":"2026-11-20T07:22:41.000000Z","error":"Error: \\"no\\"\\n    at x"}`,
    );
  });

  test('escapes every text of the application', () => {
    const run = answer({ name: 'a"\\\n', runType: '"', project: '\u0000' });
    expect(JSON.parse(mainJson(run, true))).toMatchObject({ name: 'a"\\\n', run_type: '"', session_name: '\u0000' });
  });
});

describe('the whole run', () => {
  test('has inputs even when there are none', () => {
    expect(wholeJson(answer())).toBe(`${HEAD},"inputs":{}}`);
  });

  test('has every payload that there is, and the end', () => {
    const run = answer({
      inputs: '{"q":1}',
      outputs: '{"a":2}',
      events: '[{"name":"x"}]',
      endTime: '2026-11-20T07:22:41.000000Z',
      runtime: '{}',
    });
    expect(wholeJson(run)).toBe(
      `${HEAD},"end_time":"2026-11-20T07:22:41.000000Z","extra":{"runtime":{}},"inputs":{"q":1},"outputs":{"a":2},` +
        '"events":[{"name":"x"}]}',
    );
  });
});

test.each([
  [undefined, false],
  ['{}', false],
  ['[]', false],
  ['[1]', true],
  ['{"a":1}', true],
])('the payload %s is sent: %s', (payload, expected) => {
  expect(isFilled(payload)).toBe(expected);
});

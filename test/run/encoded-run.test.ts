import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { version } from '../../src/base/env.ts';
import {
  type EncodedRun,
  isFilled,
  mainJson,
  parseMainJson,
  releaseRun,
  wholeJson,
} from '../../src/run/encoded-run.ts';
import { startRun } from '../../src/run/start-run.ts';
import { makeRun } from '../support/encoded-run.ts';
import { makeSink } from './memory-sink.ts';

const END = '2026-11-20T07:22:41.000000Z';

describe('the main part', () => {
  test('has every field of the start, and the runtime for the first run of a trace only', () => {
    const root = makeRun({ project: 'chat', name: 'a"\\\n', tags: ['"b"'], metadata: new Map([['"k"', '{"n":1}']]) });
    const child = makeRun({ project: { id: 'p' } }, root);
    const { id, dottedOrder, startTime } = root;
    expect(JSON.parse(mainJson(root, true))).toEqual({
      id,
      trace_id: id,
      name: 'a"\\\n',
      start_time: startTime,
      run_type: 'chain',
      dotted_order: dottedOrder,
      session_name: 'chat',
      tags: ['"b"'],
      extra: { metadata: { '"k"': { n: 1 } } },
    });
    expect(JSON.parse(mainJson(child, true))).toMatchObject({ trace_id: id, parent_run_id: id, session_id: 'p' });
    expect(child).toMatchObject({ dottedOrder: expect.stringMatching(`^${dottedOrder}\\.`), runtime: undefined });
  });

  test('has the fields of the end only if they are asked for', () => {
    const run = makeRun({ endTime: END, error: 'Error: "no"\n    at x' });
    expect(JSON.parse(mainJson(run, false))).not.toHaveProperty('end_time');
    expect(JSON.parse(mainJson(run, true))).toMatchObject({ end_time: END, error: 'Error: "no"\n    at x' });
    expect(JSON.parse(mainJson(makeRun(), true, { endTime: END, error: '' }))).toMatchObject({
      end_time: END,
      error: '',
    });
  });

  test('is parsed to the run that it was made of, with all fields', () => {
    const text = fc.string({ unit: 'binary' }).map((value) => value.toWellFormed());
    const fields = fc.record({
      name: text,
      runType: text,
      project: fc.oneof(
        text,
        text.map((id) => ({ id })),
      ),
      tags: fc.option(fc.array(text), { nil: undefined }),
      metadata: fc.option(
        fc
          .dictionary(text, fc.jsonValue())
          .map((values) => new Map(Object.entries(values).map(([key, value]) => [key, JSON.stringify(value)]))),
        { nil: undefined },
      ),
      runtime: fc.constantFrom(undefined, '{"sdk":"runspan"}'),
      error: fc.option(text, { nil: undefined }),
      endTime: fc.constantFrom(undefined, END),
    });
    fc.assert(
      fc.property(fields, fc.boolean(), (given, isRoot) => {
        const run = makeRun(given as Partial<EncodedRun>, isRoot ? undefined : makeRun());
        const parsed = parseMainJson(mainJson(run, true)) as EncodedRun;
        expect({ ...parsed, metadata: [...(parsed.metadata ?? [])].sort() }).toEqual({
          ...run,
          metadata: [...(run.metadata ?? [])].sort(),
        });
      }),
      { numRuns: 200 },
    );
  });

  test.each([
    ['id', 'no UUID'],
    ['trace_id', 5],
    ['parent_run_id', '"'],
    ['dotted_order', 'x'],
    ['dotted_order', '20261120T072240000000Z019a9f3c-1a00-7000-8000-000000000001'],
    ['start_time', END],
    ['end_time', 'later'],
    ['name', null],
    ['run_type', 1],
    ['session_name', undefined],
    ['tags', ['a', 1]],
    ['error', {}],
  ])('is refused if `%s` is %j', (field, value) => {
    const main = JSON.parse(mainJson(makeRun(), true));
    expect(parseMainJson(JSON.stringify({ ...main, [field]: value }))).toBeUndefined();
  });
});

test('the whole run has its payloads, and empty ones for a run that succeeded without', () => {
  const run = makeRun({ inputs: '{"q":1}', outputs: '{"a":2}', events: '[{"name":"x"}]', endTime: END });
  expect(JSON.parse(wholeJson(run))).toMatchObject({ inputs: { q: 1 }, outputs: { a: 2 }, events: [{ name: 'x' }] });
  releaseRun(run);
  expect(JSON.parse(wholeJson(run))).toMatchObject({ inputs: {}, outputs: {} });
  expect(JSON.parse(wholeJson(makeRun()))).not.toHaveProperty('outputs');
});

test('the runtime describes the platform, and nothing of the environment', () => {
  const exporter = makeSink();
  startRun({ name: 'first', exporter });
  expect(exporter.records()[0]?.extra?.runtime).toEqual({
    sdk: 'runspan',
    sdk_version: version,
    runtime: 'node',
    runtime_version: process.version,
    platform: `${process.platform}-${process.arch}`,
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

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { version } from '#src/base/version.ts';
import { type EncodedRun, mainJson, parseMainJson } from '#src/run/encoded-run.ts';
import { startRun } from '#src/run/start-run.ts';
import { forAll } from '../support/campaign.ts';
import { codePoint } from '../support/code-point.ts';
import { makeRun } from '../support/encoded-run.ts';
import { makeSink } from './memory-sink.ts';

const END = '2026-11-20T07:22:41.000000Z';

describe('the main part', () => {
  test('is parsed to its run, with all fields', () => {
    const text = fc.string({ unit: codePoint }).map((value) => value.toWellFormed());
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
      endReason: fc.constantFrom(undefined, 'cancelled', 'interrupted', 'incomplete'),
      referenceExampleId: fc.option(fc.uuid(), { nil: undefined }),
    });
    forAll(200, [fields, fc.boolean()], (given, isRoot) => {
      const run = makeRun(given as Partial<EncodedRun>, isRoot ? undefined : makeRun());
      const parsed = parseMainJson(mainJson(run, true)) as EncodedRun;
      expect({ ...parsed, metadata: [...(parsed.metadata ?? [])].sort() }).toEqual({
        ...run,
        metadata: [...(run.metadata ?? [])].sort(),
      });
    });
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
    ['reference_example_id', 'first'],
    ['error', {}],
  ])('is refused if `%s` is %j', (field, value) => {
    const main = JSON.parse(mainJson(makeRun(), true));
    expect(parseMainJson(JSON.stringify({ ...main, [field]: value }))).toBeUndefined();
  });
});

test('the runtime describes only the platform', () => {
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

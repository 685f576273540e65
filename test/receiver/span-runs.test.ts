import { describe, expect, test } from 'vitest';
import { SpanRuns } from '../../src/receiver/otlp/span-runs.ts';
import type { RunOperation } from '../../src/receiver.ts';
import { CHILD_ORDER } from './wire.ts';

const TRACE = 'a'.repeat(32);
const span = (number: number): string => String(number).padStart(16, '0');

/** The run of a span, `run-<n>`, below that of another. */
function operation(number: number, parent?: number, fields: RunOperation['fields'] = {}): RunOperation {
  const otel = {
    trace_id: TRACE,
    span_id: span(number),
    ...(parent !== undefined && { parent_span_id: span(parent) }),
  };
  return { kind: 'post', id: `run-${number}`, fields: { extra: { metadata: { otel } }, ...fields }, attachments: [] };
}

const parents = (operations: readonly RunOperation[]) =>
  operations.map(({ kind, id, fields }) => `${kind} ${id} ${fields.parent_run_id ?? '-'}`);

test('a parent that is known, or comes in the same request, is named', () => {
  const runs = new SpanRuns();
  expect(parents(runs.place([operation(2, 1), operation(1)]))).toEqual(['post run-2 run-1', 'post run-1 -']);
  expect(parents(runs.place([operation(3, 2)]))).toEqual(['post run-3 run-2']);
});

test('a parent that comes later is named by patches, once', () => {
  const runs = new SpanRuns();
  expect(parents(runs.place([operation(2, 1), operation(3, 1)]))).toEqual(['post run-2 -', 'post run-3 -']);
  expect(parents(runs.place([operation(2, 1)]))).toEqual(['post run-2 -']);
  expect(parents(runs.place([operation(1)]))).toEqual(['post run-1 -', 'patch run-2 run-1', 'patch run-3 run-1']);
  expect(parents(runs.place([operation(1)]))).toEqual(['post run-1 -']);
});

test('patches that were not kept come again', () => {
  const runs = new SpanRuns();
  runs.place([operation(2, 1)]);
  const operations = [operation(1)];
  runs.putBack(operations, runs.place(operations));
  expect(parents(runs.place(operations))).toEqual(['post run-1 -', 'patch run-2 run-1']);
});

test('a run that says itself where it stands is left there, and known to others', () => {
  const runs = new SpanRuns();
  const [one, two] = [operation(2, 1, { dotted_order: CHILD_ORDER }), operation(3, 1, { parent_run_id: 'other' })];
  expect(runs.place([one, two])).toEqual([one, two]);
  expect(parents(runs.place([operation(1), operation(4, 2)]))).toEqual(['post run-1 -', 'post run-4 run-2']);
});

test('a span that is its own parent has none', () => {
  expect(parents(new SpanRuns().place([operation(1, 1)]))).toEqual(['post run-1 -']);
});

test('spans of another trace with the same id are others', () => {
  const runs = new SpanRuns();
  const other = operation(1);
  Object.assign(other.fields.extra?.metadata?.otel as object, { trace_id: 'b'.repeat(32) });
  runs.place([other]);
  expect(parents(runs.place([operation(2, 1)]))).toEqual(['post run-2 -']);
});

test.each<[string, unknown]>([
  ['none', undefined],
  ['text', 'x'],
  ['without ids', {}],
  ['of numbers', { trace_id: 1, span_id: 2 }],
  ['of long texts', { trace_id: 'a'.repeat(33), span_id: span(1) }],
  ['of the name of all objects', { trace_id: '__proto__', span_id: '__proto__' }],
])('what is told of a span may be %s', (_, otel) => {
  const given: RunOperation = { kind: 'post', id: 'run', fields: { extra: { metadata: { otel } } }, attachments: [] };
  expect(new SpanRuns().place([given])).toEqual([given]);
});

describe('beyond so many spans the oldest are forgotten', () => {
  const children = (count: number) => Array.from({ length: count }, (_, n) => operation(n + 2, 1));

  test('as parents', () => {
    const runs = new SpanRuns(3);
    runs.place([operation(1), operation(2), operation(3)]);
    expect(parents(runs.place([operation(9, 1)]))).toEqual(['post run-9 -']);
    expect(parents(runs.place([operation(8, 2)]))).toEqual(['post run-8 -']);
    expect(parents(runs.place([operation(7, 8)]))).toEqual(['post run-7 run-8']);
  });

  test('as those that wait', () => {
    for (const [count, found] of [
      [2, 2],
      [3, 3],
      [4, 0],
    ] as const) {
      const runs = new SpanRuns(3);
      runs.place(children(count));
      expect(runs.place([operation(1)])).toHaveLength(1 + found);
    }
  });
});

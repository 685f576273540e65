import { expect, test } from 'vitest';
import { finishedRun } from '../../src/otel/finished-run.ts';
import type { SpanLike } from '../../src/otel.ts';
import { bareSpan } from '../support/bare-span.ts';

const ids = { traceId: '5b8efff798038103d269b633813fc60c', spanId: 'eee19b7ec3c1b174' };

function spanWith(attributes: Record<string, string>): SpanLike {
  const kind = { 'openinference.span.kind': 'CHAIN' };
  return { ...bareSpan('answer', ids), startTime: [1, 0], endTime: [2, 0], attributes: { ...kind, ...attributes } };
}

test('a span becomes a run of its own, with its payloads as JSON text', () => {
  const run = finishedRun(spanWith({ 'input.value': 'Where?', 'output.value': 'There' }), 'shop', true);
  expect(run?.record).toMatchObject({ name: 'answer', run_type: 'chain', session_name: 'shop' });
  expect(run?.record.id).toBe(run?.record.trace_id);
  expect(run?.record.extra).not.toHaveProperty('runtime');
  expect(run?.texts).toEqual({ inputs: '{"input":"Where?"}', outputs: '{"output":"There"}' });
  expect(run?.attachments).toEqual([]);
});

test('a span that has not ended has only its start', () => {
  const run = finishedRun(spanWith({ 'input.value': 'x', 'output.value': 'y' }), 'shop', false);
  expect(run?.record).not.toHaveProperty('end_time');
  expect(run?.texts).not.toHaveProperty('outputs');
});

import { describe, expect, test } from 'vitest';
import { WaitingSpans, type WaitingSpansOptions } from '../../src/otel/waiting-spans.ts';
import type { SpanLike } from '../../src/otel.ts';
import { gate } from '../support/gate.ts';
import { notingSink } from './set-up.ts';

const { sink } = notingSink();

/** A span of this id, below another, with some text in it. */
const waiting = (id: string, parent: string, text = '') => ({
  span: {
    spanContext: () => ({ traceId: 't', spanId: id, traceFlags: 1 }),
    attributes: { text, count: 1 },
    events: [{ name: 'e', time: [0, 0], attributes: { text } }],
  } as unknown as SpanLike,
  parent: `t:${parent}`,
  sink,
});

function made(given: Partial<WaitingSpansOptions> = {}) {
  const time = { nowMs: 0 };
  const spans = new WaitingSpans({
    spansMax: 10,
    charactersMax: 1_000,
    ageMaxMs: 1_000_000,
    monotonicMs: () => time.nowMs,
    overdue: () => {},
    ...given,
  });
  return { spans, time };
}

const ids = (taken: readonly { span: SpanLike }[]) => taken.map(({ span }) => span.spanContext().spanId);

describe('spans that wait', () => {
  test('are given to their parent, once', () => {
    const { spans } = made();
    for (const [id, parent] of ['ax', 'by', 'cx'] as unknown as [string, string][]) spans.add(waiting(id, parent));
    expect(ids(spans.takeBelow('t:x'))).toEqual(['a', 'c']);
    expect(spans.takeBelow('t:x')).toEqual([]);
    expect(spans.size).toBe(1);
  });

  test.each([
    [2, false],
    [3, false],
    [4, true],
  ])('of a bound of three are too many when they are %j: %j', (count, isOverfull) => {
    const { spans } = made({ spansMax: 3 });
    for (let index = 0; index < count; index++) spans.add(waiting(String(index), 'x'));
    expect(spans.isOverfull).toBe(isOverfull);
  });

  test.each([
    [9, false],
    [10, false],
    [11, true],
  ])(
    'of a bound of 20 characters are too much text when attribute and event have %j each: %j',
    (length, isOverfull) => {
      const { spans } = made({ charactersMax: 20 });
      spans.add(waiting('a', 'x', 'x'.repeat(length)));
      expect(spans.isOverfull).toBe(isOverfull);
      spans.takeBelow('t:x');
      expect(spans.isOverfull).toBe(false);
    },
  );

  test.each([
    [999, false],
    [1_000, true],
    [1_001, true],
  ])('after %j of 1 000 ms have waited for too long: %j', (nowMs, isOverdue) => {
    const { spans, time } = made({ ageMaxMs: 1_000 });
    spans.add(waiting('a', 'x'));
    time.nowMs = nowMs;
    expect(spans.isOverdue).toBe(isOverdue);
  });

  test('are told of when the oldest has waited for too long', async () => {
    const overdue = gate();
    const { spans } = made({ ageMaxMs: 1, monotonicMs: () => performance.now(), overdue: overdue.open });
    spans.add(waiting('a', 'x'));
    await overdue;
    expect(spans.isOverdue).toBe(true);
  });
});

describe('the first to go', () => {
  test('is the oldest', () => {
    const { spans } = made();
    spans.add(waiting('a', 'x'));
    spans.add(waiting('b', 'y'));
    expect(spans.takeTopOfOldest()?.span.spanContext().spanId).toBe('a');
    expect(spans.takeTopOfOldest()?.span.spanContext().spanId).toBe('b');
    expect(spans.takeTopOfOldest()).toBeUndefined();
  });

  test('is what the oldest waits for, over any number of levels', () => {
    const { spans } = made();
    for (const [id, parent] of ['cb', 'zy', 'ba', 'ax'] as unknown as [string, string][])
      spans.add(waiting(id, parent));
    expect(spans.takeTopOfOldest()?.span.spanContext().spanId).toBe('a');
    expect(ids(spans.takeBelow('t:a'))).toEqual(['b']);
    expect(ids(spans.takeBelow('t:b'))).toEqual(['c']);
  });

  test('is found where spans are parents of each other', () => {
    const { spans } = made();
    for (const [id, parent] of ['ab', 'bc', 'cb', 'dd'] as unknown as [string, string][])
      spans.add(waiting(id, parent));
    const taken = [1, 2, 3, 4].map(() => spans.takeTopOfOldest()?.span.spanContext().spanId);
    expect(taken.toSorted()).toEqual(['a', 'b', 'c', 'd']);
    expect(spans.size).toBe(0);
  });
});

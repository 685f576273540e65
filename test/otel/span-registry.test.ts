import { expect, test } from 'vitest';
import { type SpanEntry, SpanRegistry } from '../../src/otel/span-registry.ts';
import type { RunContext } from '../../src/run/context.ts';

const span = (index: number) => ({ spanContext: () => ({ traceId: 'trace', spanId: String(index) }) });
const entry = (): SpanEntry => ({ context: {} as RunContext });

/** A registry of as many spans, the first two as objects that are kept. */
function filled(count: number) {
  const registry = new SpanRegistry();
  const [first, second] = [span(0), span(1)];
  registry.add(first, entry());
  registry.add(second, entry());
  for (let index = 2; index < count; index++) registry.add(span(index), entry());
  return { registry, first, second };
}

test('a span is found as the object, and by its ids', () => {
  const { registry, first } = filled(2);
  expect(registry.find(first)).toBe(registry.get(first));
  expect(registry.find(span(0))).toBe(registry.get(first));
  expect(registry.get(span(0))).toBeUndefined();
  expect(registry.find(span(2))).toBeUndefined();
});

test('spans of the same id in two traces are two', () => {
  const { registry } = filled(2);
  expect(registry.find({ spanContext: () => ({ traceId: 'other', spanId: '0' }) })).toBeUndefined();
});

test.each([9_999, 10_000])('%j open spans are all found by their ids', (count) => {
  const { registry } = filled(count);
  expect(registry.find(span(0))).toBeDefined();
});

test('of many more open spans the last ten thousand are found by their ids, and all as the objects', () => {
  const { registry, first, second } = filled(40_000);
  for (let index = 30_000; index < 40_000; index++) expect(registry.find(span(index))).toBeDefined();
  expect(registry.find(span(0))).toBeUndefined();
  expect(registry.find(first)).toBeDefined();
  expect(registry.find(second)).toBeDefined();
  expect([...registry.entries()].length).toBeLessThan(40_000);
});

test('open spans are found by their ids, however many have started and ended since', () => {
  const { registry } = filled(2);
  for (let index = 2; index < 10_000; index++) {
    registry.add(span(index), entry());
    expect(registry.end(span(index))).toBeDefined();
  }
  expect(registry.find(span(0))).toBeDefined();
  expect(registry.find(span(1))).toBeDefined();
});

test('of ended spans the last 50 that started are found by their ids, and not many more', () => {
  const { registry, first } = filled(5_000);
  for (let index = 0; index < 5_000; index++) registry.end(span(index));
  for (let index = 5_000; index < 8_000; index++) {
    registry.add(span(index), entry());
    registry.end(span(index));
    expect(registry.find(span(index - 49))).toBeDefined();
  }
  expect(registry.find(span(0))).toBeUndefined();
  expect(registry.find(first)).toBeDefined();
  expect([...registry.entries()].length).toBeLessThan(6_000);
});

test('ids that are forgotten leave the objects', () => {
  const { registry, first, second } = filled(3);
  registry.end(second);
  registry.forgetIds();
  expect([registry.find(span(0)), registry.find(span(1)), registry.find(span(2))]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect(registry.find(first)).toBeDefined();
  expect(registry.find(second)).toBeDefined();
  expect([...registry.entries()]).toEqual([]);
});

test('the end of a span that was never added is nothing', () => {
  expect(filled(2).registry.end(span(2))).toBeUndefined();
});

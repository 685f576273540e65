import { describe, expect, test } from 'vitest';
import { readOtlpSpans } from '../../src/receiver/otlp/otlp-spans.ts';

const TRACE = '5b8efff798038103d269b633813fc60c';
const SPAN = 'eee19b7ec3c1b174';

const makeSpan = (fields: Record<string, unknown> = {}) => ({
  traceId: TRACE,
  spanId: SPAN,
  name: 'answer',
  startTimeUnixNano: '1763622160123456789',
  endTimeUnixNano: '1763622161000000000',
  ...fields,
});

const request = (spans: unknown[], resource: unknown[] = [], scope?: unknown) => ({
  resourceSpans: [{ resource: { attributes: resource }, scopeSpans: [{ scope, spans }] }],
});

const read = (fields: Record<string, unknown> = {}) => readOtlpSpans(request([makeSpan(fields)]));
const spanOf = (fields: Record<string, unknown> = {}) => read(fields).spans[0]?.span;
const named = (key: string, stringValue: string) => ({ key, value: { stringValue } });

test('a span has what OpenTelemetry knows of it', () => {
  const given = makeSpan({
    traceId: TRACE.toUpperCase(),
    parentSpanId: 'eee19b7ec3c1b173',
    kind: 3,
    flags: 0x301,
    status: { code: 2, message: 'no' },
    attributes: [named('a', 'b')],
    events: [{ timeUnixNano: '1763622160500000000', name: 'retry', attributes: [named('c', 'd')] }],
    links: [{ traceId: TRACE, spanId: SPAN, attributes: [named('e', 'f')] }],
    droppedAttributesCount: 1,
    droppedEventsCount: 2,
    droppedLinksCount: 3,
  });
  const { spans } = readOtlpSpans(request([given], [named('service.name', 'shop')], { name: 'tracer', version: '1' }));
  expect(spans).toHaveLength(1);
  expect(spans[0]).toMatchObject({ hasEnded: true, project: 'shop' });
  expect(spans[0]?.span).toMatchObject({
    name: 'answer',
    kind: 2,
    parentSpanContext: { traceId: TRACE, spanId: 'eee19b7ec3c1b173', isRemote: true },
    startTime: [1_763_622_160, 123_456_789],
    endTime: [1_763_622_161, 0],
    status: { code: 2, message: 'no' },
    attributes: { a: 'b' },
    events: [{ name: 'retry', time: [1_763_622_160, 500_000_000], attributes: { c: 'd' } }],
    links: [{ context: { traceId: TRACE, spanId: SPAN }, attributes: { e: 'f' } }],
    resource: { attributes: { 'service.name': 'shop' } },
    instrumentationScope: { name: 'tracer', version: '1' },
    droppedAttributesCount: 1,
    droppedEventsCount: 2,
    droppedLinksCount: 3,
  });
  expect(spans[0]?.span.spanContext()).toMatchObject({ traceId: TRACE, spanId: SPAN });
});

describe('a span is told of as rejected, and the others are kept, when its', () => {
  test.each<[string, unknown]>([
    ['traceId', undefined],
    ['traceId', '0'.repeat(32)],
    ['traceId', TRACE.slice(1)],
    ['traceId', `${TRACE.slice(1)}g`],
    ['traceId', 'W47/95gDgQPSabYzgT/GDA=='],
    ['spanId', undefined],
    ['spanId', '0'.repeat(16)],
    ['spanId', 5],
    ['parentSpanId', 'x'],
    ['startTimeUnixNano', undefined],
    ['startTimeUnixNano', '0'],
    ['startTimeUnixNano', '-1'],
    ['startTimeUnixNano', 'now'],
    ['startTimeUnixNano', {}],
    ['startTimeUnixNano', '8993721600000000000'],
    ['endTimeUnixNano', '8993721600000000000'],
    ['endTimeUnixNano', 1.5],
  ])('%s is %j', (field, value) => {
    const { spans, rejected, reason } = readOtlpSpans(
      request([makeSpan({ [field]: value }), makeSpan({ traceId: 'x' }), makeSpan()]),
    );
    expect([spans.length, rejected]).toEqual([1, 2]);
    expect(reason).toContain(field);
  });
});

test.each<[unknown, [number, number]]>([
  ['8993721599999999999', [8_993_721_599, 999_999_999]],
  [1763622160123456789n, [1_763_622_160, 123_456_789]],
  [1_763_622_160_000_000_000, [1_763_622_160, 0]],
])('time %s', (given, expected) => {
  expect(spanOf({ startTimeUnixNano: given })?.startTime).toEqual(expected);
});

test.each([undefined, null, '', '0'.repeat(16)])('a parent of %j is none', (parentSpanId) => {
  expect(spanOf({ parentSpanId })).not.toHaveProperty('parentSpanContext');
});

test('a span without an end has not ended', () => {
  expect(read({ endTimeUnixNano: '0' }).spans[0]?.hasEnded).toBe(false);
  expect(read({ endTimeUnixNano: undefined }).spans[0]?.hasEnded).toBe(false);
});

test.each<[unknown, unknown]>([
  [{ stringValue: '' }, ''],
  [{ boolValue: false }, false],
  [{ intValue: '7' }, 7],
  [{ intValue: -7 }, -7],
  [{ intValue: '9007199254740993' }, '9007199254740993'],
  [{ intValue: 'x' }, undefined],
  [{ doubleValue: 0.5 }, 0.5],
  [{ doubleValue: 'NaN' }, Number.NaN],
  [{ doubleValue: '-Infinity' }, Number.NEGATIVE_INFINITY],
  [{ bytesValue: 'AP8=' }, Uint8Array.of(0, 255)],
  [{ arrayValue: { values: [{ stringValue: 'a' }, { intValue: 1 }] } }, ['a', 1]],
  [{ arrayValue: {} }, []],
  [{ kvlistValue: { values: [named('a', 'b')] } }, { a: 'b' }],
  [{}, undefined],
  [null, undefined],
  ['x', undefined],
])('the value %j', (value, expected) => {
  expect(spanOf({ attributes: [{ key: 'a', value }] })?.attributes.a).toEqual(expected);
});

test('attributes under the names of all objects are attributes', () => {
  const attributes = ['__proto__', 'constructor', 'toString'].map((key) => named(key, 'x'));
  const read = spanOf({ attributes })?.attributes ?? {};
  expect(Object.keys(read)).toEqual(['__proto__', 'constructor', 'toString']);
  expect({}).not.toHaveProperty('x');
});

test.each<[unknown[], string | undefined]>([
  [[named('service.name', 'shop')], 'shop'],
  [[named('service.name', 'shop'), named('openinference.project.name', 'mine')], 'mine'],
  [[named('service.name', 'unknown_service')], undefined],
  [[named('service.name', 'unknown_service:node')], undefined],
  [[named('service.name', '')], undefined],
  [[], undefined],
])('a resource of %j names the project %s', (resource, project) => {
  expect(readOtlpSpans(request([makeSpan()], resource)).spans[0]?.project).toBe(project);
});

test.each<unknown>([
  [],
  'x',
  null,
  { resourceSpans: {} },
  { resourceSpans: [5] },
  { resourceSpans: [{ scopeSpans: 'x' }] },
  { resourceSpans: [{ scopeSpans: [{ spans: [[]] }] }] },
])('%j is no request', (body) => {
  expect(() => readOtlpSpans(body)).toThrow(expect.objectContaining({ status: 400 }));
});

test('a request without spans is one', () => {
  for (const body of [{}, { resourceSpans: [] }, { resourceSpans: [{}] }, { resourceSpans: [{ scopeSpans: [{}] }] }]) {
    expect(readOtlpSpans(body)).toEqual({ spans: [], rejected: 0, reason: undefined });
  }
});

test('a request has 10 000 spans and no more, whichever of them can be used', () => {
  const many = (count: number) => readOtlpSpans(request([...Array(count - 1).fill(makeSpan()), {}]));
  expect(many(9_999).spans).toHaveLength(9_998);
  expect(many(10_000)).toMatchObject({ rejected: 1 });
  expect(() => many(10_001)).toThrow(expect.objectContaining({ status: 413 }));
});

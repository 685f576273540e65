// Spans of runs, read by the code that OpenTelemetry has generated from OTLP's protobuf files, and beside the spans that
// OpenTelemetry encodes.
import { createRequire } from 'node:module';
import type { Tracer } from '@opentelemetry/api';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jsonEncoding, protobufEncoding, SpanGroups, sentRecord } from '#src/otel/otlp/traces.ts';
import { RunSpanProcessor } from '#src/otel.ts';
import type { RunRecord } from '#src/run/record.ts';
import { isoTimestamp } from '#src/run/time.ts';
import { recordRuns } from '#src/testing.ts';
import { codePoint } from '../support/code-point.ts';

const require = createRequire(new URL('./otel-1/package.json', import.meta.url));
const { ProtobufTraceSerializer } = require('@opentelemetry/otlp-transformer');
const { opentelemetry } = require('@opentelemetry/otlp-transformer/build/src/generated/root.js');
const { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } = require('@opentelemetry/sdk-trace-base');
const { context, trace } = require('@opentelemetry/api');

const Request = opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;

const text = fc.string({ unit: 'grapheme', maxLength: 40 });
const key = text.map((name) => `key.${name}`);
const integer = fc.oneof(fc.integer(), fc.maxSafeInteger(), fc.constantFrom(0, -1, 2 ** 31, -(2 ** 53) + 1));
/** Whole numbers are sent as integers, those that are not exact as numbers with a fraction. */
const double = fc.double({ noNaN: true, noDefaultInfinity: true }).filter((value) => !Number.isInteger(value));
const plain = fc.oneof(text, fc.string({ unit: codePoint, maxLength: 200 }), integer, double, fc.boolean());

const long = fc.constantFrom(20, 2_000, 20_000).map((length) => ({ text: 'ü€x'.repeat(length) }));

const hex = (digits: number) =>
  fc
    .string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: digits - 1, maxLength: digits - 1 })
    .map((id) => `${id}1`);
const link = fc.record({ trace_id: hex(32), span_id: hex(16), attributes: fc.dictionary(key, plain, { maxKeys: 3 }) });
const START_US = Date.UTC(2026, 10, 20) * 1_000;
const time = fc.integer({ min: 0, max: 10 ** 12 }).map((us) => START_US + us);

const runRecord = fc
  .record({
    id: fc.uuid({ version: 7 }),
    parent: fc.option(fc.uuid({ version: 7 }), { nil: undefined }),
    startUs: time,
    durationUs: fc.option(fc.integer({ min: 0, max: 10 ** 9 }), { nil: undefined }),
    name: text,
    run_type: fc.constantFrom('chain', 'llm', 'tool', 'retriever', 'embedding', 'prompt', 'other'),
    session_name: fc.constantFrom('shop', 'other'),
    inputs: fc.oneof(fc.dictionary(key, fc.jsonValue(), { maxKeys: 3 }), long),
    outputs: fc.option(fc.dictionary(key, fc.jsonValue(), { maxKeys: 3 }), { nil: undefined }),
    error: fc.option(text, { nil: undefined }),
    tags: fc.option(fc.array(text, { maxLength: 3 }), { nil: undefined }),
    metadata: fc.dictionary(key, fc.oneof(plain, fc.jsonValue()), { maxKeys: 5 }),
    otel: fc.option(
      fc.record({
        trace_id: hex(32),
        span_id: hex(16),
        kind: fc.constantFrom('INTERNAL', 'SERVER', 'CONSUMER'),
        status: fc.constantFrom('OK', 'UNSET'),
        links: fc.array(link, { maxLength: 2 }),
      }),
      { nil: undefined },
    ),
    events: fc.array(
      fc.record({ name: text, time: time.map(isoTimestamp), kwargs: fc.dictionary(key, fc.jsonValue()) }),
      { maxLength: 3 },
    ),
  })
  .map(({ id, parent, startUs, durationUs, metadata, otel, ...fields }) => ({
    ...fields,
    id,
    trace_id: parent ?? id,
    parent_run_id: parent,
    dotted_order: id,
    start_time: isoTimestamp(startUs),
    end_time: durationUs === undefined ? undefined : isoTimestamp(startUs + durationUs),
    extra: { metadata: otel === undefined ? metadata : { ...metadata, otel } },
  })) as fc.Arbitrary<RunRecord>;

test('protobuf has the values of JSON and nothing else, for any runs', () => {
  fc.assert(
    fc.property(fc.array(runRecord, { minLength: 1, maxLength: 5 }), fc.nat(5), (runs, cut) => {
      const slices = [runs.slice(0, cut), runs.slice(cut)].map(groupsOf);
      const bytes = Buffer.concat(protobufEncoding.join(slices.map(protobufEncoding.encode)));
      const json = Buffer.concat(jsonEncoding.join([jsonEncoding.encode(slices.flat())])).toString();
      expect(decoded(bytes)).toEqual(withoutDefaults(JSON.parse(json)));
      expect(Buffer.from(Request.encode(Request.decode(bytes)).finish()).equals(bytes)).toBe(true);
    }),
    { numRuns: 100 },
  );
});

interface GivenSpan {
  readonly name: string;
  readonly kind: number;
  readonly attributes: Record<string, string | number | boolean>;
  readonly events: readonly { readonly name: string; readonly attributes: Record<string, string | number | boolean> }[];
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status: { readonly code: number; readonly message?: string };
  readonly isChild: boolean;
}

const attributes = fc.dictionary(key, plain, { maxKeys: 4 });
const givenSpan: fc.Arbitrary<GivenSpan> = fc.record({
  name: text,
  kind: fc.nat(4),
  attributes,
  events: fc.array(fc.record({ name: text, attributes }), { maxLength: 3 }),
  links: fc.array(fc.record({ traceId: hex(32), spanId: hex(16) }), { maxLength: 2 }),
  status: fc.oneof(
    fc.record({ code: fc.nat(1) }),
    fc.record({ code: fc.constant(2), message: text.map((message) => `no ${message}`) }),
  ),
  isChild: fc.boolean(),
});

test('a span is the same, encoded by OpenTelemetry and as the span of its run', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(givenSpan, { minLength: 1, maxLength: 4 }), async (given) => {
      const recorder = recordRuns();
      const ended = new InMemorySpanExporter();
      const ours = new RunSpanProcessor({ shouldExport: 'all' });
      const provider = new BasicTracerProvider({ spanProcessors: [ours, new SimpleSpanProcessor(ended)] });
      record(provider.getTracer('scope', '1.2'), given);
      const theirs = spansIn(ProtobufTraceSerializer.serializeRequest(ended.getFinishedSpans()));
      const bytes = Buffer.concat(protobufEncoding.join([protobufEncoding.encode(groupsOf(recorder.runs))]));
      recorder.stop();
      await provider.shutdown();
      const sent = new Map(spansIn(bytes).map((span) => [span.spanId, span]));
      expect(sent.size).toBe(theirs.length);
      // A run needs a name.
      for (const span of theirs) expect(sent.get(span.spanId)).toMatchObject({ ...span, name: span.name || 'span' });
    }),
    { numRuns: 100 },
  );
});

function groupsOf(runs: readonly RunRecord[]) {
  const groups = new SpanGroups({ 'host.name': 'ü' });
  for (const run of runs) groups.add(sentRecord(run));
  return groups.all;
}

/** Returns a request as OTLP/JSON, without the fields that have their default value. */
function decoded(bytes: Uint8Array): unknown {
  const json = Request.toObject(Request.decode(bytes), { longs: String, bytes: String });
  return withoutDefaults(
    JSON.parse(JSON.stringify(json), (name, value) =>
      /^(trace|span|parentSpan)Id$/.test(name) ? Buffer.from(value, 'base64').toString('hex') : value,
    ),
  );
}

/** Removes empty lists, counts of 0 and statuses that are not set. */
function withoutDefaults(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutDefaults);
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value)
    .map(([name, inner]) => [name, withoutDefaults(inner)] as const)
    .filter(([name, inner]) => !(name.startsWith('dropped') || ['[]', '{"code":0}'].includes(JSON.stringify(inner))));
  return Object.fromEntries(kept);
}

function record(tracer: Tracer, given: readonly GivenSpan[]): void {
  const root = tracer.startSpan('root');
  for (const { name, kind, attributes, events, links, status, isChild } of given) {
    const linked = links.map((ids) => ({ context: { ...ids, traceFlags: 1 } }));
    const above = isChild ? trace.setSpan(context.active(), root) : context.active();
    const span = tracer.startSpan(name, { kind, attributes, links: linked }, above);
    for (const event of events) span.addEvent(event.name, event.attributes);
    span.setStatus(status).end();
  }
  root.end();
}

interface Attribute {
  readonly key: string;
  readonly value: unknown;
}

interface Encoded {
  readonly name: string;
  readonly spanId: string;
  readonly attributes?: readonly Attribute[];
  readonly events?: readonly { readonly attributes?: readonly Attribute[] }[];
}

/** Returns the spans of a request, with times in microseconds, and without the event that runspan adds for an error. */
function spansIn(bytes: Uint8Array) {
  const { resourceSpans } = JSON.parse(JSON.stringify(decoded(bytes)), (name, value) =>
    name.endsWith('UnixNano') ? value.slice(0, -3) : value,
  ) as { resourceSpans: { scopeSpans: { scope: unknown; spans: Encoded[] }[] }[] };
  return resourceSpans.flatMap(({ scopeSpans }) =>
    scopeSpans.flatMap(({ scope, spans }) =>
      spans.map(({ attributes = [], events = [], ...span }) => ({
        ...span,
        scope,
        attributes: Object.fromEntries(attributes.map(({ key, value }) => [key, value])),
        events: events.filter((event) => event.attributes?.some(({ key }) => key === 'runspan.error') !== true),
      })),
    ),
  );
}

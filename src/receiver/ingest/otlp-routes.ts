import { diagnostics } from '../../base/diagnostics.ts';
import { noteStep } from '../../otel/conventions/ai-sdk.ts';
import type { SpanMapping } from '../../otel/mapping/span-to-run.ts';
import type { SpanLike } from '../../otel/span-like.ts';
import { defined, listOf, parseExact } from '../../payload/fields.ts';
import type { Feedback } from '../domain/feedback.ts';
import { inTurns } from '../domain/in-turns.ts';
import type { RunOperation } from '../domain/run-message.ts';
import { HttpError, toHttpError, ValidationIssues } from '../http/http-error.ts';
import { JsonReader } from '../http/json.ts';
import type { Call, Route, RouteResponse } from '../http/route.ts';
import { addFeedbackBatch } from '../store/add-feedback.ts';
import { finishedRun } from './finished-run.ts';
import { ingest } from './ingest-routes.ts';
import { feedbackOn, joinRecords, storeRecords } from './log-records.ts';
import { readOtlpLogs } from './otlp-logs.ts';
import { protobufResponse, protobufStatus, readProtobufRequest } from './otlp-protobuf.ts';
import { type OtlpSpan, readOtlpSpans } from './otlp-spans.ts';
import { ownRecord } from './own-run.ts';
import { readRun } from './run-message.ts';

/** A signal of OpenTelemetry, with the names of its request and of the count of its rejected items in JSON. */
interface Signal {
  readonly name: 'traces' | 'logs' | 'metrics';
  readonly request: string;
  readonly rejected: string;
  readonly ingest: (call: Call, read: () => unknown) => Promise<PartialSuccess>;
}

interface PartialSuccess {
  readonly rejected: number;
  readonly reason: string;
}

const SIGNALS: readonly Signal[] = [
  { name: 'traces', request: 'ExportTraceServiceRequest', rejected: 'rejectedSpans', ingest: ingestSpans },
  { name: 'logs', request: 'ExportLogsServiceRequest', rejected: 'rejectedLogRecords', ingest: ingestLogs },
  { name: 'metrics', request: 'ExportMetricsServiceRequest', rejected: 'rejectedDataPoints', ingest: rejectMetrics },
];

/** LangSmith documents the prefix `/otel`, and some OpenTelemetry exporters send a slash at the end. */
export const otlpRoutes: readonly Route[] = SIGNALS.flatMap((signal) =>
  ['', '/otel'].flatMap((prefix) =>
    ['', '/'].map((end): Route => {
      const path = `${prefix}/v1/${signal.name}${end}`;
      return { method: 'POST', path, admission: 'write', isForPages: true, handle: (call) => receive(call, signal) };
    }),
  ),
);

interface Encoding {
  read(body: Buffer, request: string): unknown;
  response(signal: Signal, rejected: number, reason: string): Promise<Uint8Array> | string;
  status(message: string): Promise<Uint8Array> | string;
}

const ENCODINGS: ReadonlyMap<string, Encoding> = new Map(
  Object.entries<Encoding>({
    'application/json': {
      read: (body) => new JsonReader().parse(body, 'The body').value,
      response: ({ rejected: name }, rejected, errorMessage) =>
        JSON.stringify(errorMessage === '' ? {} : { partialSuccess: { [name]: `${rejected}`, errorMessage } }),
      // `detail` is added because all other error responses contain it.
      status: (message) => JSON.stringify({ message, detail: message }),
    },
    'application/x-protobuf': {
      read: readProtobufRequest,
      response: (_, rejected, reason) => protobufResponse(rejected, reason),
      status: protobufStatus,
    },
  }),
);

async function receive(call: Call, signal: Signal): Promise<RouteResponse> {
  const contentType = call.request.headers['content-type'] ?? '';
  const type = contentType.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  const encoding = ENCODINGS.get(type);
  if (encoding === undefined) {
    const expected = [...ENCODINGS.keys()].join(' or ');
    throw new HttpError(415, `Expected content-type to be ${expected}, got ${JSON.stringify(contentType)}`);
  }
  const headers = { 'content-type': type };
  try {
    const { rejected, reason } = await call.bodies.read(call.request, call.scope.tenant, (body) =>
      signal.ingest(call, () => encoding.read(body, signal.request)),
    );
    return { status: 200, headers, content: await encoding.response(signal, rejected, reason) };
  } catch (error) {
    const known = toHttpError(error);
    if (known === undefined) throw error;
    const { status, message } = known;
    return { status, headers: { ...known.headers, ...headers }, content: await encoding.status(message) };
  }
}

/** Exporters of OpenTelemetry send metrics to the same endpoint. Their points are counted as rejected. */
async function rejectMetrics({ metrics }: Call, read: () => unknown): Promise<PartialSuccess> {
  const rejected = pointsIn(await read());
  metrics.ignoredMetrics += 1;
  diagnostics.warnOnce('metrics', 'the receiver accepts the metrics of OpenTelemetry, but stores none; logged once');
  return { rejected, reason: rejected === 0 ? '' : 'the receiver stores no metrics' };
}

function pointsIn(value: unknown): number {
  const entries = typeof value === 'object' ? Object.entries(value ?? {}) : [];
  return entries.reduce((sum, [name, one]) => sum + (name === 'dataPoints' ? listOf(one).length : pointsIn(one)), 0);
}

async function ingestLogs(call: Call, read: () => unknown): Promise<PartialSuccess> {
  const { records, others, problem } = await readOtlpLogs(await read());
  const refused = records.length === 0 ? 0 : await storeRecords(call, records);
  if (others + refused === 0) return { rejected: 0, reason: '' };
  const reason = `not stored: ${others} log records that are not messages, exceptions or evaluations of a span, and ${refused} beyond 1,000 per span`;
  return { rejected: others + refused, reason: [problem, reason].filter(Boolean).join('; ') };
}

async function ingestSpans(call: Call, read: () => unknown): Promise<PartialSuccess> {
  const { spans: given, rejected, reason } = await readOtlpSpans(await read());
  const spans = selectedSpans(call, given);
  const header = call.request.headers['langsmith-project'];
  const byId = new Map(spans.map(({ span }) => [span.spanContext().spanId, span]));
  for (const { span } of spans) noteStep(span, byId.get(span.parentSpanContext?.spanId ?? ''));
  const operations: RunOperation[] = [];
  const feedback: Feedback[] = [];
  for await (const span of inTurns(spans)) {
    const project = typeof header === 'string' ? header : span.project;
    const operation = operationOf({ ...span, project }, call.mapping);
    operations.push(operation);
    feedback.push(...feedbackOn(span.span, operation.id));
  }
  if (operations.length > 0) await ingest(call, operations);
  const joined = spans.map(({ span }, at) => ({ ...span.spanContext(), runId: operations[at]?.id }));
  await joinRecords(call, joined);
  if (feedback.length > 0) await addFeedbackBatch(call.store, call.scope, feedback);
  return { rejected, reason };
}

const LEFT_OUT =
  'the receiver stores only OpenTelemetry spans that are related to model calls; --all-spans stores all; logged once';

function selectedSpans({ select, metrics }: Call, given: readonly OtlpSpan[]): readonly OtlpSpan[] {
  const selected = select?.(given.map(({ span }) => span));
  if (selected === undefined) return given;
  if (selected.size < given.length) diagnostics.warnOnce('left out spans', LEFT_OUT);
  metrics.leftOutSpans += given.length - selected.size;
  return given.flatMap((one) => {
    const span = selected.get(one.span);
    return span === undefined ? [] : [{ ...one, span }];
  });
}

/** Returns the run that runspan sent as a span. If the run is invalid, the span is converted like any other. */
function ownOperationOf(span: SpanLike, project: string | undefined): RunOperation | undefined {
  const record = ownRecord(span);
  if (record === undefined) return undefined;
  const named = { ...record, ...(record.session_id === undefined && defined({ session_name: project })) };
  const issues = new ValidationIssues();
  const operation = readRun({ format: 'batch', kind: 'post', strict: false }, { record: named, loc: ['span'] }, issues);
  return issues.first === undefined ? operation : undefined;
}

/**
 * Converts a span to a run. The project comes from the span attributes, the request header or the resource, in this
 * order. Without a project, the run keeps the project of another message about it. The store derives the run's position in
 * the trace from the parent span.
 */
function operationOf({ span, hasEnded, project }: OtlpSpan, mapping: SpanMapping | undefined): RunOperation {
  const own = ownOperationOf(span, project);
  if (own !== undefined) return own;
  const run = finishedRun(span, project, hasEnded, mapping);
  const payloads = Object.entries(run.texts).map(([field, text]) => [field, parseExact(text)]);
  return { kind: 'post', ...run, fields: { ...run.fields, ...Object.fromEntries(payloads) } };
}

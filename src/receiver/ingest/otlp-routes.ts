import { finishedRun } from '../../otel/mapping/finished-run.ts';
import { ownRecord } from '../../otel/otlp/own-run.ts';
import type { SpanLike } from '../../otel/span-like.ts';
import { setSoon } from '../../platform/timers.ts';
import type { RunOperation } from '../domain/run-message.ts';
import { HttpError, toHttpError, ValidationIssues } from '../http/http-error.ts';
import { JsonReader } from '../http/json.ts';
import type { Call, Route, RouteResponse } from '../http/route.ts';
import { ingest } from './ingest-routes.ts';
import { protobufResponse, protobufStatus, readProtobufRequest } from './otlp-protobuf.ts';
import { type OtlpSpan, readOtlpSpans } from './otlp-spans.ts';
import { readRun } from './run-message.ts';

/** HTTP routes for OTLP. The prefix `/otel` is supported because LangSmith documents this prefix. */
export const otlpRoutes: readonly Route[] = ['/v1/traces', '/otel/v1/traces'].map((path) => {
  return { method: 'POST', path, admission: 'write', handle: postTraces };
});

/** Number of spans to convert before the server processes other requests. */
const SPANS_AT_ONCE = 200;

/** An encoding for OTLP requests and responses: JSON or protobuf. */
interface Encoding {
  read(body: Buffer): unknown;
  response(rejected: number, reason: string): Promise<Uint8Array> | string;
  status(message: string): Promise<Uint8Array> | string;
}

const ENCODINGS: ReadonlyMap<string, Encoding> = new Map<string, Encoding>([
  [
    'application/json',
    {
      read: (body) => new JsonReader().parse(body, 'The body').value,
      response: (rejectedSpans, errorMessage) => {
        return JSON.stringify(
          rejectedSpans === 0 ? {} : { partialSuccess: { rejectedSpans: `${rejectedSpans}`, errorMessage } },
        );
      },
      // `detail` is added because all other error responses contain it.
      status: (message) => JSON.stringify({ message, detail: message }),
    },
  ],
  ['application/x-protobuf', { read: readProtobufRequest, response: protobufResponse, status: protobufStatus }],
]);

async function postTraces(call: Call): Promise<RouteResponse> {
  const contentType = call.request.headers['content-type'] ?? '';
  const type = contentType.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  const encoding = ENCODINGS.get(type);
  if (encoding === undefined) {
    const expected = [...ENCODINGS.keys()].join(' or ');
    throw new HttpError(415, `Expected content-type to be ${expected}, got ${JSON.stringify(contentType)}`);
  }
  const headers = { 'content-type': type };
  try {
    const { rejected, reason } = await call.bodies.read(call.request, async (body) =>
      ingestSpans(call, await encoding.read(body)),
    );
    return { status: 200, headers, content: await encoding.response(rejected, reason) };
  } catch (error) {
    const known = toHttpError(error);
    if (known === undefined) throw error;
    const { status, detail } = known;
    const message =
      typeof detail === 'string' ? detail : detail.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; ');
    return { status, headers: { ...known.headers, ...headers }, content: await encoding.status(message) };
  }
}

async function ingestSpans(call: Call, request: unknown): Promise<{ rejected: number; reason: string }> {
  const { spans, rejected, reason } = readOtlpSpans(request);
  const header = call.request.headers['langsmith-project'];
  const operations: RunOperation[] = [];
  for (const [index, span] of spans.entries()) {
    if (index % SPANS_AT_ONCE === SPANS_AT_ONCE - 1) await new Promise<void>((resolve) => void setSoon(resolve));
    operations.push(operationOf(span, header));
  }
  if (operations.length > 0) await ingest(call, operations);
  return { rejected, reason };
}

/** Returns the run that runspan sent as a span. If the run is invalid, the span is converted like any other. */
function ownOperationOf(span: SpanLike, project: string | undefined): RunOperation | undefined {
  const record = ownRecord(span);
  if (record === undefined) return undefined;
  const named =
    record.session_id === undefined && project !== undefined ? { ...record, session_name: project } : record;
  const issues = new ValidationIssues();
  const operation = readRun({ format: 'batch', kind: 'post', strict: false }, { record: named, loc: ['span'] }, issues);
  return issues.first === undefined ? operation : undefined;
}

/**
 * Converts a span to a run. The project comes from the span attributes, the request header or the resource, in this
 * order. Without a project, the run keeps the project of another message about it. The store derives the run's position in
 * the trace from the parent span.
 */
function operationOf({ span, hasEnded, project }: OtlpSpan, header: unknown): RunOperation {
  const own = ownOperationOf(span, typeof header === 'string' ? header : project);
  if (own !== undefined) return own;
  const run = finishedRun(span, typeof header === 'string' ? header : project, hasEnded);
  const payloads = Object.entries(run.texts).map(([field, text]) => [field, JSON.parse(text)]);
  return { kind: 'post', ...run, fields: { ...run.fields, ...Object.fromEntries(payloads) } };
}

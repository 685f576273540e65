import { setSoon } from '../../base/timers.ts';
import { type FinishedRun, finishedRun } from '../../otel/finished-run.ts';
import { HttpError, toHttpError } from '../http-error.ts';
import { ingest } from '../ingest/ingest-routes.ts';
import { JsonReader } from '../ingest/json.ts';
import type { Call, Route, RouteResponse } from '../route.ts';
import type { RunFields, RunOperation } from '../store/store.ts';
import { protobufResponse, protobufStatus, readProtobufRequest } from './otlp-protobuf.ts';
import { type OtlpSpan, type OtlpSpans, readOtlpSpans } from './otlp-spans.ts';

/** OTLP over HTTP. LangSmith documents the prefix `/otel`. */
export const otlpRoutes: readonly Route[] = ['/v1/traces', '/otel/v1/traces'].map((path) => {
  return { method: 'POST', path, admission: 'write', handle: (call) => postTraces(call, encodingOf(call)) };
});

/** Number of spans that are mapped before other requests get a turn. */
const SPANS_AT_ONCE = 200;

/** The encoding of a request and its response. */
interface Encoding {
  readonly type: string;
  read(body: Buffer): unknown;
  response(rejected: number, reason: string): Promise<Uint8Array> | string;
  status(message: string): Promise<Uint8Array> | string;
}

const JSON_ENCODING: Encoding = {
  type: 'application/json',
  read: (body) => new JsonReader().parse(body, 'The body').value,
  response: (rejectedSpans, errorMessage) =>
    JSON.stringify(rejectedSpans === 0 ? {} : { partialSuccess: { rejectedSpans: `${rejectedSpans}`, errorMessage } }),
  // `detail` is the field of all other errors of the receiver.
  status: (message) => JSON.stringify({ message, detail: message }),
};

const PROTOBUF_ENCODING: Encoding = {
  type: 'application/x-protobuf',
  read: readProtobufRequest,
  response: protobufResponse,
  status: protobufStatus,
};

function encodingOf({ request }: Call): Encoding {
  const type = request.headers['content-type'] ?? '';
  const [name] = type.split(';', 1);
  const found = [JSON_ENCODING, PROTOBUF_ENCODING].find((encoding) => encoding.type === name?.trim().toLowerCase());
  if (found !== undefined) return found;
  const expected = 'application/json or application/x-protobuf';
  throw new HttpError(415, `Expected content-type to be ${expected}, got ${JSON.stringify(type)}`);
}

async function postTraces(call: Call, encoding: Encoding): Promise<RouteResponse> {
  const headers = { 'content-type': encoding.type };
  try {
    const use = async (body: Buffer) => ingestSpans(call, readOtlpSpans(await encoding.read(body)));
    const { rejected, reason } = await call.bodies.read(call.request, use);
    return { status: 200, headers, content: await encoding.response(rejected, reason ?? '') };
  } catch (error) {
    const refused = toHttpError(error);
    if (refused === undefined) throw error;
    const { status, detail } = refused;
    const message =
      typeof detail === 'string' ? detail : detail.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; ');
    return { status, headers: { ...refused.headers, ...headers }, content: await encoding.status(message) };
  }
}

async function ingestSpans(call: Call, { spans, rejected, reason }: OtlpSpans): Promise<Omit<OtlpSpans, 'spans'>> {
  const named = call.request.headers['langsmith-project'];
  const operations: RunOperation[] = [];
  for (const [index, span] of spans.entries()) {
    if (index % SPANS_AT_ONCE === SPANS_AT_ONCE - 1) await new Promise<void>((resolve) => void setSoon(resolve));
    const operation = operationOf(span, typeof named === 'string' ? named : undefined);
    if (operation !== undefined) operations.push(operation);
  }
  if (operations.length > 0) await ingest(call, operations);
  const lost = spans.length - operations.length;
  return { rejected: rejected + lost, reason: reason ?? (lost > 0 ? 'A span could not be read' : undefined) };
}

/** The project is taken from the attributes of the span, the header or the service, in this order. */
function operationOf({ span, hasEnded, project }: OtlpSpan, named: string | undefined): RunOperation | undefined {
  const run = finishedRun(span, named ?? project ?? 'default', hasEnded);
  return (
    run && { kind: 'post', id: run.record.id, fields: fieldsOf(run), texts: run.texts, attachments: run.attachments }
  );
}

/** Leaves out the place in the trace, which the store derives from the parent span. */
function fieldsOf({ record, texts }: FinishedRun): RunFields {
  const { id: _id, trace_id: _traceId, dotted_order: _order, ...fields } = record;
  for (const [field, text] of Object.entries(texts)) Object.assign(fields, { [field]: JSON.parse(text) });
  return fields;
}

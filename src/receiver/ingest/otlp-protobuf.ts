import type Pbf from 'pbf';
import { messageOf } from '../../base/text.ts';
import { takeTurn } from '../domain/in-turns.ts';
import { HttpError } from '../http/http-error.ts';
import { VALUES_MAX } from '../http/json.ts';

const DEPTH_MAX = 200;

/** A protobuf field. `type` is either an encoding in `MessageReader` or the name of a message. */
type Field = readonly [nameInJson: string, type: string, repeated?: 'repeated'];

const ATTRIBUTES: Field = ['attributes', 'KeyValue', 'repeated'];
/** The list of scopes before OTLP 0.15. It is ignored beside the present one (`trace.proto` 0.15), else refused. */
const FORMER: Field = ['instrumentation_library_* (field 1000)', 'Unread', 'repeated'];

/** By message name and field number, as in `trace.proto`, `logs.proto`, `metrics.proto` and what these import. */
const MESSAGES: Readonly<Record<string, Readonly<Record<number, Field>>>> = {
  ExportTraceServiceRequest: { 1: ['resourceSpans', 'ResourceSpans', 'repeated'] },
  ExportMetricsServiceRequest: { 1: ['resourceMetrics', 'ResourceMetrics', 'repeated'] },
  ResourceMetrics: { 2: ['scopeMetrics', 'ScopeMetrics', 'repeated'] },
  ScopeMetrics: { 2: ['metrics', 'Metric', 'repeated'] },
  Metric: Object.fromEntries([5, 7, 9, 10, 11].map((number): [number, Field] => [number, ['data', 'MetricData']])),
  MetricData: { 1: ['dataPoints', 'counted', 'repeated'] },
  Unread: {},
  ExportLogsServiceRequest: { 1: ['resourceLogs', 'ResourceLogs', 'repeated'] },
  ResourceLogs: { 2: ['scopeLogs', 'ScopeLogs', 'repeated'], 1000: FORMER },
  ScopeLogs: { 2: ['logRecords', 'LogRecord', 'repeated'] },
  LogRecord: {
    1: ['timeUnixNano', 'fixed64'],
    5: ['body', 'AnyValue'],
    6: ATTRIBUTES,
    9: ['traceId', 'hex'],
    10: ['spanId', 'hex'],
    11: ['observedTimeUnixNano', 'fixed64'],
    12: ['eventName', 'text'],
  },
  ResourceSpans: { 1: ['resource', 'Resource'], 2: ['scopeSpans', 'ScopeSpans', 'repeated'], 1000: FORMER },
  Resource: { 1: ATTRIBUTES },
  ScopeSpans: { 1: ['scope', 'Scope'], 2: ['spans', 'Span', 'repeated'] },
  Scope: { 1: ['name', 'text'], 2: ['version', 'text'] },
  Span: {
    1: ['traceId', 'hex'],
    2: ['spanId', 'hex'],
    4: ['parentSpanId', 'hex'],
    5: ['name', 'text'],
    6: ['kind', 'int'],
    7: ['startTimeUnixNano', 'fixed64'],
    8: ['endTimeUnixNano', 'fixed64'],
    9: ATTRIBUTES,
    10: ['droppedAttributesCount', 'int'],
    11: ['events', 'Event', 'repeated'],
    12: ['droppedEventsCount', 'int'],
    13: ['links', 'Link', 'repeated'],
    14: ['droppedLinksCount', 'int'],
    15: ['status', 'Status'],
    16: ['flags', 'fixed32'],
  },
  Event: { 1: ['timeUnixNano', 'fixed64'], 2: ['name', 'text'], 3: ATTRIBUTES },
  Link: { 1: ['traceId', 'hex'], 2: ['spanId', 'hex'], 4: ATTRIBUTES },
  Status: { 2: ['message', 'text'], 3: ['code', 'int'] },
  KeyValue: { 1: ['key', 'text'], 2: ['value', 'AnyValue'] },
  AnyValue: {
    1: ['stringValue', 'text'],
    2: ['boolValue', 'bool'],
    3: ['intValue', 'int'],
    4: ['doubleValue', 'double'],
    5: ['arrayValue', 'ArrayValue'],
    6: ['kvlistValue', 'KeyValueList'],
    7: ['bytesValue', 'bytes'],
  },
  ArrayValue: { 1: ['values', 'AnyValue', 'repeated'] },
  KeyValueList: { 1: ['values', 'KeyValue', 'repeated'] },
};

/** Messages that contain a large part of a request. */
const REQUEST_PARTS: ReadonlySet<string> = new Set(
  ['Spans', 'Logs', 'Metrics'].flatMap((records) => [`Resource${records}`, `Scope${records}`]),
);

/** Wire types of encodings that are not length-delimited. The reader skips fields with an unexpected wire type. */
const WIRE_TYPES: Readonly<Record<string, number>> = { bool: 0, int: 0, double: 1, fixed64: 1, fixed32: 5 };
const LENGTH_DELIMITED = 2;

/** Creates a `Pbf`. The `pbf` package is loaded when the first protobuf request arrives. */
async function newPbf(bytes?: Uint8Array): Promise<Pbf> {
  const { default: Reader } = await import('pbf');
  return new Reader(bytes);
}

/**
 * Parses a message, for example an `ExportTraceServiceRequest`, and returns its JSON form. Throws an HTTP 400 error if
 * the body is invalid, or a 413 error if it has too many values.
 */
export async function readProtobufRequest(bytes: Buffer, message: string): Promise<unknown> {
  const reader = new MessageReader(await newPbf(bytes), bytes);
  try {
    // Building two million values before the body is refused would take a second.
    check(await newPbf(bytes), message, bytes.length, { left: VALUES_MAX });
    return await reader.readRequest(message, bytes.length);
  } catch (error) {
    if (error instanceof HttpError) throw error;
    throw new HttpError(400, `The body is not a valid ${message} in protobuf: ${messageOf(error)}`);
  }
}

export async function protobufResponse(rejected: number, reason: string): Promise<Uint8Array> {
  const pbf = await newPbf();
  const writePartialSuccess = (_: unknown, to: Pbf): void => {
    to.writeVarintField(1, rejected);
    to.writeStringField(2, reason);
  };
  if (reason !== '') pbf.writeMessage(1, writePartialSuccess, undefined);
  return pbf.finish();
}

/** Encodes a `google.rpc.Status` that contains only a message, as OTLP permits. */
export async function protobufStatus(message: string): Promise<Uint8Array> {
  const pbf = await newPbf();
  pbf.writeStringField(2, message);
  return pbf.finish();
}

/** Throws if a message is invalid, or has too many values. Reading it then needs no checks. */
function check(pbf: Pbf, message: string, end: number, values: { left: number }, depth = 1): void {
  if (depth > DEPTH_MAX) throw new Error(`a message is nested deeper than ${DEPTH_MAX} levels`);
  while (pbf.pos < end) {
    const type = nextField(pbf, message)?.[1];
    if (type === undefined) continue;
    values.left -= 1;
    if (values.left < 0) throw new HttpError(413, `The body has more than ${VALUES_MAX} values`);
    if (!Object.hasOwn(MESSAGES, type)) pbf.skip(pbf.type);
    else check(pbf, type, pbf.readVarint() + pbf.pos, values, depth + 1);
  }
  // Also detects nested fields that extend beyond the end of the message.
  if (pbf.pos !== end) throw new Error('a message ends within a field');
}

/** Reads the key of a field. Returns undefined, and passes over the field, if it is unknown or has another wire type. */
function nextField(pbf: Pbf, message: string): Field | undefined {
  const key = pbf.readVarint();
  const field = MESSAGES[message]?.[key >> 3];
  pbf.type = key & 7;
  if (field !== undefined && pbf.type === (WIRE_TYPES[field[1]] ?? LENGTH_DELIMITED)) return field;
  pbf.skip(key);
  return undefined;
}

function put(result: Record<string, unknown>, [name, , repeated]: Field, value: unknown): void {
  if (repeated === undefined) result[name] = value;
  else if (Array.isArray(result[name])) result[name].push(value);
  else result[name] = [value];
}

class MessageReader {
  readonly #pbf: Pbf;
  // Source of fixed-length numbers, because `pbf` ignores a view's byte offset when reading such numbers.
  readonly #bytes: Buffer;

  constructor(pbf: Pbf, bytes: Buffer) {
    this.#pbf = pbf;
    this.#bytes = bytes;
  }

  /** Reads a request. Lets the event loop turn between its spans or log records. */
  async readRequest(message: string, end: number): Promise<Record<string, unknown>> {
    const result: Record<string, unknown> = {};
    while (this.#pbf.pos < end) {
      const field = nextField(this.#pbf, message);
      if (field !== undefined) put(result, field, await this.#value(field[1]));
      await takeTurn();
    }
    return result;
  }

  #read(message: string, end: number): Record<string, unknown> {
    const result: Record<string, unknown> = {};
    while (this.#pbf.pos < end) {
      const field = nextField(this.#pbf, message);
      if (field !== undefined) put(result, field, this.#value(field[1]));
    }
    return result;
  }

  #value(type: string): unknown {
    const pbf = this.#pbf;
    const from = pbf.pos;
    switch (type) {
      case 'bool':
        return pbf.readBoolean();
      case 'int': {
        const int = pbf.readVarint(true);
        return Number.isSafeInteger(int) ? int : int64In(this.#bytes.subarray(from, pbf.pos));
      }
      case 'double':
        pbf.pos += 8;
        return this.#bytes.readDoubleLE(from);
      case 'fixed64':
        pbf.pos += 8;
        return this.#bytes.readBigUInt64LE(from);
      case 'fixed32':
        pbf.pos += 4;
        return this.#bytes.readUInt32LE(from);
    }
    const valueEnd = pbf.readVarint() + pbf.pos;
    if (REQUEST_PARTS.has(type)) return this.readRequest(type, valueEnd);
    if (Object.hasOwn(MESSAGES, type)) return this.#read(type, valueEnd);
    const start = pbf.pos;
    pbf.pos = valueEnd;
    if (type === 'counted') return true;
    const bytes = this.#bytes.subarray(start, valueEnd);
    // Copies the bytes, because a view would keep the whole body in memory.
    return type === 'bytes' ? Uint8Array.from(bytes) : bytes.toString(type === 'hex' ? 'hex' : 'utf8');
  }
}

/** Reads a varint. `pbf` rounds integers that are not safe. */
function int64In(varint: Uint8Array): bigint {
  return BigInt.asIntN(
    64,
    varint.reduceRight((int, byte) => (int << BigInt(7)) | BigInt(byte & 0x7f), BigInt(0)),
  );
}

import type Pbf from 'pbf';
import { messageOf } from '../../base/text.ts';
import { HttpError } from '../http/http-error.ts';
import { VALUES_MAX } from '../http/json.ts';

/** Maximum nesting depth of protobuf messages. */
const DEPTH_MAX = 200;

/** A protobuf field. `type` is either an encoding in `MessageReader` or the name of a message. */
type Field = readonly [nameInJson: string, type: string, repeated?: 'repeated'];

const ATTRIBUTES: Field = ['attributes', 'KeyValue', 'repeated'];

/**
 * Fields to read, by message name and field number. See `trace.proto`, `logs.proto`, `common.proto` and
 * `resource.proto` in opentelemetry-proto.
 */
const MESSAGES: Readonly<Record<string, Readonly<Record<number, Field>>>> = {
  ExportTraceServiceRequest: { 1: ['resourceSpans', 'ResourceSpans', 'repeated'] },
  ExportLogsServiceRequest: { 1: ['resourceLogs', 'ResourceLogs', 'repeated'] },
  ResourceLogs: { 2: ['scopeLogs', 'ScopeLogs', 'repeated'] },
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
  ResourceSpans: { 1: ['resource', 'Resource'], 2: ['scopeSpans', 'ScopeSpans', 'repeated'] },
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

/**
 * Wire type of each encoding. Messages and encodings that are not listed are length-delimited. The reader skips fields
 * with an unexpected wire type.
 */
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
    // Building two million values before the refusal of the body would take a second.
    countValues(await newPbf(bytes), message, bytes.length, { left: VALUES_MAX });
    return reader.read(message, bytes.length, 1);
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

/** Throws an HTTP 413 error if `MessageReader` would read too many values. Passes over the contents of other fields. */
function countValues(pbf: Pbf, message: string, end: number, values: { left: number }, depth = 1): void {
  if (depth > DEPTH_MAX) return;
  const fields = MESSAGES[message];
  while (pbf.pos < end) {
    const key = pbf.readVarint();
    const type = fields?.[key >> 3]?.[1];
    if (type !== undefined && (key & 7) === (WIRE_TYPES[type] ?? LENGTH_DELIMITED)) {
      values.left -= 1;
      if (values.left < 0) throw new HttpError(413, `The body has more than ${VALUES_MAX} values`);
      if (type in MESSAGES) {
        const valueEnd = pbf.readVarint() + pbf.pos;
        countValues(pbf, type, valueEnd, values, depth + 1);
        pbf.pos = valueEnd;
        continue;
      }
    }
    pbf.skip(key);
  }
}

/** Converts protobuf messages to objects. Skips unknown fields. */
class MessageReader {
  readonly #pbf: Pbf;
  // Source of fixed-length numbers, because `pbf` ignores a view's byte offset when reading such numbers.
  readonly #bytes: Buffer;

  constructor(pbf: Pbf, bytes: Buffer) {
    this.#pbf = pbf;
    this.#bytes = bytes;
  }

  read(message: string, end: number, depth: number): Record<string, unknown> {
    if (depth > DEPTH_MAX) throw new Error(`a message is nested deeper than ${DEPTH_MAX} levels`);
    const fields = MESSAGES[message];
    const result: Record<string, unknown> = {};
    const readField = (tag: number): void => {
      const field = fields?.[tag];
      if (field === undefined) return;
      const [name, type, repeated] = field;
      if (this.#pbf.type !== (WIRE_TYPES[type] ?? LENGTH_DELIMITED)) return;
      const value = this.#value(type, depth);
      if (repeated === undefined) result[name] = value;
      else if (Array.isArray(result[name])) result[name].push(value);
      else result[name] = [value];
    };
    this.#pbf.readFields(readField, undefined, end);
    // Also detects nested fields that extend beyond the end of the message.
    if (this.#pbf.pos !== end) throw new Error('a message ends within a field');
    return result;
  }

  #value(type: string, depth: number): unknown {
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
    if (Object.hasOwn(MESSAGES, type)) return this.read(type, valueEnd, depth + 1);
    const bytes = this.#bytes.subarray(pbf.pos, valueEnd);
    pbf.pos = valueEnd;
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

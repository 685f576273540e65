import type Pbf from 'pbf';
import { messageOf } from '../../base/text.ts';
import { VALUES_MAX } from '../ingest/json.ts';
import { Refusal } from '../refusal.ts';

/** How deep messages may be in each other. */
const DEPTH_MAX = 200;

/** Types of the wire: what follows a tag. */
const VARINT = 0;
const EIGHT_BYTES = 1;
const BYTES = 2;
const FOUR_BYTES = 5;

/** How a field is written. */
type Kind = 'text' | 'hex' | 'bytes' | 'bool' | 'int' | 'double' | 'fixed64' | 'fixed32';

/** Name in JSON; kind, or the message that it is; whether there may be more than one. */
type Field = readonly [name: string, kind: string, repeated?: 'repeated'];

const ATTRIBUTES: Field = ['attributes', 'KeyValue', 'repeated'];

/**
 * The fields of each message that are read, by field number: opentelemetry-proto, `trace.proto`, `common.proto`,
 * `resource.proto`.
 */
const MESSAGES: Readonly<Record<string, Readonly<Record<number, Field>>>> = {
  ExportTraceServiceRequest: { 1: ['resourceSpans', 'ResourceSpans', 'repeated'] },
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

/** The type of the wire that each kind has; messages have that of bytes. */
const WIRE_TYPES: Readonly<Record<Kind, number>> = {
  text: BYTES,
  hex: BYTES,
  bytes: BYTES,
  bool: VARINT,
  int: VARINT,
  double: EIGHT_BYTES,
  fixed64: EIGHT_BYTES,
  fixed32: FOUR_BYTES,
};

/** Loaded with the first body of protobuf. */
async function newPbf(bytes?: Uint8Array): Promise<Pbf> {
  const { default: Reader } = await import('pbf');
  return new Reader(bytes);
}

/** An `ExportTraceServiceRequest` in the form of JSON, or 400. 413 for more values than JSON may have. */
export async function readProtobufRequest(bytes: Buffer): Promise<unknown> {
  const reader = new MessageReader(await newPbf(bytes), bytes);
  try {
    return reader.read('ExportTraceServiceRequest', bytes.length, 1);
  } catch (error) {
    throw error instanceof Refusal ? error : unreadable(messageOf(error));
  }
}

/** An `ExportTraceServiceResponse`. */
export async function protobufResponse(rejected: number, reason: string): Promise<Uint8Array> {
  const pbf = await newPbf();
  const writePartialSuccess = (_: unknown, to: Pbf): void => {
    to.writeVarintField(1, rejected);
    to.writeStringField(2, reason);
  };
  if (rejected > 0) pbf.writeMessage(1, writePartialSuccess, undefined);
  return pbf.finish();
}

/** A `google.rpc.Status`, of which OTLP uses the message alone. */
export async function protobufStatus(message: string): Promise<Uint8Array> {
  const pbf = await newPbf();
  pbf.writeStringField(2, message);
  return pbf.finish();
}

function unreadable(why: string): Refusal {
  return new Refusal(400, `The body is no protobuf of an ExportTraceServiceRequest: ${why}`);
}

/** Reads messages by their fields; those that are not named, or of another type of the wire, are passed over. */
class MessageReader {
  readonly #pbf: Pbf;
  // The package reads numbers of fixed length from the start of the memory that the bytes are a view of.
  readonly #bytes: Buffer;
  #valuesLeft = VALUES_MAX;

  constructor(pbf: Pbf, bytes: Buffer) {
    this.#pbf = pbf;
    this.#bytes = bytes;
  }

  read(message: string, end: number, depth: number): Record<string, unknown> {
    if (depth > DEPTH_MAX) throw unreadable(`it nests deeper than ${DEPTH_MAX} levels`);
    const fields = MESSAGES[message];
    const result: Record<string, unknown> = {};
    const readField = (tag: number): void => {
      const field = fields?.[tag];
      if (field === undefined) return;
      const [name, kind, repeated] = field;
      if (this.#pbf.type !== (WIRE_TYPES[kind as Kind] ?? BYTES)) return;
      this.#valuesLeft -= 1;
      if (this.#valuesLeft < 0) throw new Refusal(413, `The body has more than ${VALUES_MAX} values`);
      const value = this.#value(kind, depth);
      if (repeated === undefined) result[name] = value;
      else if (Array.isArray(result[name])) result[name].push(value);
      else result[name] = [value];
    };
    this.#pbf.readFields(readField, undefined, end);
    // Also where a field within goes beyond this message.
    if (this.#pbf.pos !== end) throw unreadable('it ends within a field');
    return result;
  }

  #value(kind: string, depth: number): unknown {
    const pbf = this.#pbf;
    const from = pbf.pos;
    switch (kind) {
      case 'bool':
        return pbf.readBoolean();
      case 'int':
        return pbf.readVarint(true);
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
    if (Object.hasOwn(MESSAGES, kind)) return this.read(kind, valueEnd, depth + 1);
    const bytes = this.#bytes.subarray(pbf.pos, valueEnd);
    pbf.pos = valueEnd;
    // Copied, as bytes would keep the whole body in memory.
    return kind === 'bytes' ? Uint8Array.from(bytes) : bytes.toString(kind === 'hex' ? 'hex' : 'utf8');
  }
}

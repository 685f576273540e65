import type { Fields } from '../../payload/fields.ts';
import type { AttributeValue, OtlpAttributes, OtlpEncoding, OtlpSpan, SpanGroup } from './otlp-span.ts';

/** OTLP/protobuf. The numbers of the fields are those of `trace.proto`, `resource.proto` and `common.proto`. */
export const protobufEncoding: OtlpEncoding = {
  contentType: 'application/x-protobuf',
  encode: (groups) => {
    const writer = new ProtobufWriter();
    for (const group of groups) writeGroup(writer, group);
    return writer.bytes();
  },
  // A message is the concatenation of its fields.
  join: (slices) => slices,
};

/** Returns the fields of a response as in JSON: an `ExportTraceServiceResponse`, or gRPC's `Status` for a refusal. */
export function readProtobufResponse(status: number, bytes: Uint8Array): Fields {
  const fields = fieldsIn(bytes);
  const textIn = (value: unknown): string | undefined => (value instanceof Uint8Array ? TEXT.decode(value) : undefined);
  if (status >= 300) return { message: textIn(fields.get(2)) };
  const partial = fields.get(1);
  if (!(partial instanceof Uint8Array)) return {};
  const inner = fieldsIn(partial);
  return { partialSuccess: { rejectedSpans: inner.get(1), errorMessage: textIn(inner.get(2)) } };
}

const TEXT = new TextDecoder();

function writeGroup(to: ProtobufWriter, { resource, scope, spans }: SpanGroup): void {
  const resourceSpans = to.begin(1);
  const ofResource = to.begin(1);
  writeAttributes(to, 1, resource);
  to.end(ofResource);
  const scopeSpans = to.begin(2);
  const ofScope = to.begin(1);
  to.text(1, scope.name);
  to.text(2, scope.version);
  to.end(ofScope);
  for (const span of spans) writeSpan(to, span);
  to.end(scopeSpans);
  to.end(resourceSpans);
}

function writeSpan(to: ProtobufWriter, span: OtlpSpan): void {
  const start = to.begin(2);
  to.hex(1, span.traceId);
  to.hex(2, span.spanId);
  if (span.parentSpanId !== undefined) to.hex(4, span.parentSpanId);
  to.text(5, span.name);
  to.varint(6, span.kind);
  to.time(7, span.startUs);
  to.time(8, span.endUs);
  writeAttributes(to, 9, span.attributes);
  for (const { name, timeUs, attributes } of span.events) {
    const event = to.begin(11);
    to.time(1, timeUs);
    to.text(2, name);
    writeAttributes(to, 3, attributes);
    to.end(event);
  }
  for (const { traceId, spanId, attributes } of span.links) {
    const link = to.begin(13);
    to.hex(1, traceId);
    to.hex(2, spanId);
    writeAttributes(to, 4, attributes);
    to.end(link);
  }
  if (span.statusCode !== 0) {
    const status = to.begin(15);
    if (span.statusMessage !== '') to.text(2, span.statusMessage);
    to.varint(3, span.statusCode);
    to.end(status);
  }
  to.end(start);
}

function writeAttributes(to: ProtobufWriter, field: number, attributes: OtlpAttributes): void {
  for (const [name, value] of attributes) {
    const attribute = to.begin(field, value);
    to.text(1, name);
    const any = to.begin(2, value);
    writeValue(to, value);
    to.end(any);
    to.end(attribute);
  }
}

function writeValue(to: ProtobufWriter, value: AttributeValue): void {
  if (typeof value === 'string') to.text(1, value);
  else if (typeof value === 'boolean') to.varint(2, value ? 1 : 0);
  else if (typeof value !== 'number') {
    const list = to.begin(5);
    for (const item of value) {
      const any = to.begin(1, item);
      to.text(1, item);
      to.end(any);
    }
    to.end(list);
  } else if (Number.isSafeInteger(value)) to.integer(3, value);
  else to.double(4, value);
}

const VARINT = 0;
const FIXED64 = 1;
const LENGTH_DELIMITED = 2;

/** Size of a negative integer, which is sent in 64 bits. */
const NEGATIVE_BYTES = 10;

/** Size of the buffer before the first message, in bytes. */
const BYTES_MIN = 64 * 1024;

/** Maximum size of a number with its tag, in bytes. */
const NUMBER_BYTES_MAX = 12;

/** Up to this length, the room for text is estimated from its length instead of counting its bytes. */
const ESTIMATED_CHARACTERS_MAX = 8_192;

/** Maximum UTF-8 bytes per UTF-16 code unit. */
const CHARACTER_BYTES_MAX = 3;

/** Text up to this length is copied character by character, which is faster than a call of `Buffer.write`. */
const COPIED_CHARACTERS_MAX = 48;

/** Writes protobuf messages. The length of a message is written in front of it when the message ends. */
class ProtobufWriter {
  #buffer: Buffer = Buffer.allocUnsafeSlow(BYTES_MIN);
  #length = 0;

  bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#length);
  }

  /**
   * Starts a nested message and returns its position for `end`. If the message holds `content`, there is room for the
   * length of a message of this size, so that `end` moves nothing.
   */
  begin(field: number, content?: AttributeValue): number {
    this.#tag(field, LENGTH_DELIMITED);
    const characters = typeof content === 'string' ? content.length : 0;
    const room = characters < 0x60 ? 1 : characters < 0x3f00 ? 2 : characters < 0x1f_ff00 ? 3 : 4;
    this.#length += room;
    // The room is kept in the byte before the message.
    this.#buffer[this.#length - 1] = room;
    return this.#length;
  }

  end(start: number): void {
    const room = this.#buffer[start - 1] as number;
    const size = this.#length - start;
    const needed = sizeOfVarint(size);
    if (needed !== room) {
      this.#reserve(NUMBER_BYTES_MAX);
      this.#buffer.copyWithin(start - room + needed, start, this.#length);
    }
    this.#length = start - room;
    this.#writeVarint(size);
    this.#length += size;
  }

  text(field: number, text: string): void {
    const isShort = text.length <= ESTIMATED_CHARACTERS_MAX;
    this.#tag(field, LENGTH_DELIMITED, isShort ? text.length * CHARACTER_BYTES_MAX : Buffer.byteLength(text));
    if (text.length <= COPIED_CHARACTERS_MAX && this.#copyAscii(text)) return;
    const room = sizeOfVarint(text.length);
    const start = this.#length + room;
    const size = this.#buffer.write(text, start, 'utf8');
    const needed = sizeOfVarint(size);
    if (needed !== room) this.#buffer.copyWithin(start - room + needed, start, start + size);
    this.#writeVarint(size);
    this.#length += size;
  }

  /** `digits` is an id in hexadecimal digits. */
  hex(field: number, digits: string): void {
    this.#tag(field, LENGTH_DELIMITED, digits.length);
    this.#writeVarint(digits.length >>> 1);
    this.#length += this.#buffer.write(digits, this.#length, 'hex');
  }

  varint(field: number, value: number): void {
    this.#tag(field, VARINT);
    this.#writeVarint(value);
  }

  /** Writes a safe integer as `int64`. A negative integer takes ten bytes. */
  integer(field: number, value: number): void {
    if (value >= 0) {
      this.varint(field, value);
      return;
    }
    this.#tag(field, VARINT);
    let low = value >>> 0;
    let high = Math.floor(value / 0x1_0000_0000) >>> 0;
    for (let bytes = 1; bytes < NEGATIVE_BYTES; bytes++) {
      this.#buffer[this.#length++] = (low & 0x7f) | 0x80;
      low = ((low >>> 7) | (high << 25)) >>> 0;
      high >>>= 7;
    }
    this.#buffer[this.#length++] = low;
  }

  double(field: number, value: number): void {
    this.#tag(field, FIXED64);
    this.#length = this.#buffer.writeDoubleLE(value, this.#length);
  }

  /** Writes microseconds as the nanoseconds of a `fixed64`, in two halves, because the number is not a safe integer. */
  time(field: number, us: number): void {
    this.#tag(field, FIXED64);
    const low = (us % 0x1_0000_0000) * 1_000;
    const high = Math.floor(us / 0x1_0000_0000) * 1_000 + Math.floor(low / 0x1_0000_0000);
    this.#length = this.#buffer.writeUInt32LE(low % 0x1_0000_0000, this.#length);
    this.#length = this.#buffer.writeUInt32LE(high, this.#length);
  }

  /** Writes text with its length. Returns false and writes nothing if the text has other characters than ASCII. */
  #copyAscii(text: string): boolean {
    const buffer = this.#buffer;
    let at = this.#length + 1;
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index);
      if (code >= 0x80) return false;
      buffer[at++] = code;
    }
    buffer[this.#length] = text.length;
    this.#length = at;
    return true;
  }

  /** Writes the tag of a field. Reserves room for a number and for `bytes` more. */
  #tag(field: number, type: number, bytes = 0): void {
    this.#reserve(NUMBER_BYTES_MAX + bytes);
    this.#writeVarint((field << 3) | type);
  }

  #writeVarint(value: number): void {
    const buffer = this.#buffer;
    let rest = value;
    for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) buffer[this.#length++] = (rest % 0x80) | 0x80;
    buffer[this.#length++] = rest;
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#buffer.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.#buffer.length * 2));
    this.#buffer.copy(grown, 0, 0, this.#length);
    this.#buffer = grown;
  }
}

function sizeOfVarint(value: number): number {
  if (value < 0x80) return 1;
  if (value < 0x4000) return 2;
  if (value < 0x20_0000) return 3;
  return value < 0x1000_0000 ? 4 : 5;
}

/** Returns the varints and the length-delimited fields of a message. Stops at any other field. Empty if the message is cut. */
function fieldsIn(bytes: Uint8Array): Map<number, number | Uint8Array> {
  const fields = new Map<number, number | Uint8Array>();
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let factor = 1; at < bytes.length; factor *= 0x80) {
      const byte = bytes[at++] as number;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
    return Number.NaN;
  };
  while (at < bytes.length) {
    const tag = varint();
    const value = varint();
    const field = tag >>> 3;
    if (Number.isNaN(value)) return new Map();
    if ((tag & 7) === VARINT) fields.set(field, value);
    else if ((tag & 7) === LENGTH_DELIMITED) {
      if (at + value > bytes.length) return new Map();
      fields.set(field, bytes.subarray(at, at + value));
      at += value;
    } else break;
  }
  return fields;
}

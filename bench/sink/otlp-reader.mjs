/** Finds the spans in an OTLP request over HTTP. A span arrives whole, after its end. */

const SPAN_ID = Buffer.from('"spanId":"');
const SPAN_ID_CHARS = 16;

/** Reads JSON. The pattern cannot match inside a payload, where quotation marks are escaped. */
export function readJsonSpans(body, arrivals) {
  for (let at = body.indexOf(SPAN_ID); at >= 0; at = body.indexOf(SPAN_ID, at)) {
    at += SPAN_ID.length;
    note(body.latin1Slice(at, at + SPAN_ID_CHARS), arrivals);
  }
}

/** The field numbers on the path to an id: resource_spans, scope_spans, spans, span_id. */
const WAY = [1, 2, 2, 2];

/** Protobuf: https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/trace/v1/trace.proto */
export function readProtobufSpans(body, arrivals) {
  walk(body, 0, body.length, 0, arrivals);
}

function walk(body, start, end, level, arrivals) {
  let at = start;
  while (at < end) {
    const [tag, afterTag] = varint(body, at);
    const wireType = tag & 7;
    if (wireType === 0) [, at] = varint(body, afterTag);
    else if (wireType === 1) at = afterTag + 8;
    else if (wireType === 5) at = afterTag + 4;
    else {
      const [length, from] = varint(body, afterTag);
      at = from + length;
      if (tag >>> 3 !== WAY[level]) continue;
      if (level === WAY.length - 1) note(body.hexSlice(from, at), arrivals);
      else walk(body, from, at, level + 1, arrivals);
    }
  }
}

function note(id, arrivals) {
  arrivals.start(id);
  arrivals.end(id);
}

/** Returns the number and the offset of its end. Lengths and tags are far below 2^31. */
function varint(body, start) {
  let value = 0;
  let at = start;
  for (let shift = 0; ; shift += 7) {
    const byte = body[at++];
    value += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) return [value, at];
  }
}

/** Finds the spans in a request of OTLP over HTTP: ids, and the length of their inputs and outputs. */

const SPAN_ID = /"spanId":"([0-9a-f]{16})"/g;

/** @returns {string[]} the ids of the spans in a body of JSON */
export function spanIdsOfJson(body) {
  return Array.from(body.latin1Slice().matchAll(SPAN_ID), ([, id]) => id);
}

/** The way to the ids through the fields of the messages: resource_spans, scope_spans, spans, span_id. */
const WAY = [1, 2, 2, 2];

/**
 * @returns {string[]} the ids of the spans in a body of protobuf:
 * https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/trace/v1/trace.proto
 */
export function spanIdsOfProtobuf(body) {
  const ids = [];
  walk(body, 0, body.length, 0, ids);
  return ids;
}

function walk(body, start, end, level, ids) {
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
      if (level === WAY.length - 1) ids.push(body.hexSlice(from, at));
      else walk(body, from, at, level + 1, ids);
    }
  }
}

/** The number, and where it ends. Lengths and tags are far below 2^31. */
function varint(body, start) {
  let value = 0;
  let at = start;
  for (let shift = 0; ; shift += 7) {
    const byte = body[at++];
    value += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) return [value, at];
  }
}

/** Finds the spans in a braintrust `POST /logs3` body. A span has one row, and perhaps rows that are merged into it. */
export function readRows(body, arrivals) {
  for (const { id, _is_merge: isMerge, metrics, input, output } of JSON.parse(body).rows) {
    if (!isMerge) arrivals.start(id);
    if (metrics?.end !== undefined) arrivals.end(id);
    for (const payload of [input, output]) {
      if (payload !== undefined) arrivals.payloadBytes += JSON.stringify(payload).length;
    }
  }
}

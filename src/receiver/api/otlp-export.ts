import { jsonEncoding, SpanGroups, sentRecord } from '../../otel/otlp/traces.ts';
import { parseExact } from '../../payload/fields.ts';
import type { Feedback } from '../domain/feedback.ts';
import type { StoredRun } from '../domain/run-view.ts';

/** Number of runs, and length of their JSON text, in one request. */
const REQUEST_RUNS = 100;
const REQUEST_LENGTH = 4 * 1024 * 1024;

/**
 * Yields OTLP requests in JSON, one per line: the format that a collector reads from a file. `lines` are runs with their
 * feedback as JSON text.
 */
export async function* otlpLines(lines: AsyncIterable<string>): AsyncGenerator<string> {
  let groups = new SpanGroups({});
  let [runs, length] = [0, 0];
  for await (const line of lines) {
    const { feedback = [], ...run } = parseExact<StoredRun & { readonly feedback?: readonly Feedback[] }>(line);
    groups.add(sentRecord(run, feedback));
    runs += 1;
    length += line.length;
    if (runs < REQUEST_RUNS && length < REQUEST_LENGTH) continue;
    yield lineOf(groups);
    groups = new SpanGroups({});
    [runs, length] = [0, 0];
  }
  if (runs > 0) yield lineOf(groups);
}

function lineOf(groups: SpanGroups): string {
  return `${Buffer.concat(jsonEncoding.join([jsonEncoding.encode(groups.all)])).toString()}\n`;
}

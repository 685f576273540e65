import { jsonEncoding, SpanGroups, sentRecord } from '../../../otel/otlp/traces.ts';
import { parseExact } from '../../../payload/fields.ts';
import type { Feedback } from '../../domain/feedback.ts';
import type { StoredRun } from '../../domain/run-view.ts';
import { batches } from './trace-export.ts';

/** Number of runs, and length of their JSON text, in one request. */
const REQUEST_RUNS = 100;
const REQUEST_LENGTH = 4 * 1024 * 1024;

/** Yields OTLP requests in JSON, one per line, as collectors read them. `lines` are runs with their feedback. */
export async function* otlpLines(lines: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const batch of batches(lines, REQUEST_RUNS, REQUEST_LENGTH)) {
    const groups = new SpanGroups({});
    for (const line of batch) {
      const { feedback = [], ...run } = parseExact<StoredRun & { readonly feedback?: readonly Feedback[] }>(line);
      groups.add(sentRecord(run, feedback));
    }
    yield `${Buffer.concat(jsonEncoding.join([jsonEncoding.encode(groups.all)])).toString()}\n`;
  }
}

import { exactJson, parseExact } from '../../../payload/fields.ts';
import { secretPatterns } from '../../../payload/redaction/patterns.ts';
import { type Redaction, redact } from '../../../payload/redaction/redact.ts';
import { serialize } from '../../../payload/serialize.ts';
import { grouped } from '../../domain/grouped.ts';
import { mapInTurns } from '../../domain/in-turns.ts';
import { pathSegment } from '../../domain/path-segment.ts';
import {
  IMAGE_TYPES,
  PAYLOAD_FIELDS,
  type RunDetails,
  type RunOutline,
  type SavedData,
  type StoredRun,
} from '../../domain/run-view.ts';
import { summaryOf, wholeTexts } from '../../domain/summary.ts';
import { condition } from '../../filter/parser.ts';
import { parsedQuery } from '../../filter/run-filter.ts';
import { jsonPieces } from '../../http/json-pieces.ts';
import { savedPage } from '../../http/page-routes.ts';
import type { Reader } from '../../store/store.ts';

const RUNS_MAX = 2_000;
/** Maximum length of the details, payloads and images in a file, as JSON text. */
const LENGTH_MAX = 5_000_000;
const IMAGE_BYTES_MAX = 500_000;

/**
 * Yields an HTML file that shows a trace without a receiver. Secrets are masked, because the runs of other clients may
 * contain some. Data beyond the limits is left out, in the order of the tree. Returns undefined if the trace is unknown.
 */
export async function savedTrace(
  reader: Reader,
  id: string,
  savedMs: number = Date.now(),
): Promise<AsyncIterable<string> | undefined> {
  const outline = await reader.store.outline(reader.scope, id);
  if (outline.length === 0) return undefined;
  const [before, after] = savedPage();
  const omittedRuns = Math.max(0, outline.length - RUNS_MAX);
  const summary = await summaryIn(reader, id);
  const runs = await mapInTurns(outline.slice(0, RUNS_MAX), (text): RunOutline => JSON.parse(text));
  return (async function* () {
    yield before;
    const head: Omit<SavedData, 'responses'> = JSON.parse(masked({ id, savedMs, omittedRuns, summary }));
    for await (const piece of jsonPieces({ ...head }, 'responses', responses(reader, id, runs))) {
      // Escape characters that could end the script element in which the JSON text is, or a line of a script.
      yield piece.replace(/[<\u2028\u2029]/g, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`);
    }
    yield after;
  })();
}

async function summaryIn({ store, scope }: Reader, id: string): Promise<SavedData['summary']> {
  const query = parsedQuery({ filter: condition('trace', id), limit: 1 }, 'traces');
  const [trace] = (await store.traces(scope, query)).items;
  if (trace === undefined) return undefined;
  const { error: _, inputs_preview: __, outputs_preview: ___, ...summary } = trace;
  return summary;
}

/** Yields pairs of a path and its response, as JSON text. Reads each run once, because finding one may take long. */
async function* responses(reader: Reader, traceId: string, outline: readonly RunOutline[]): AsyncGenerator<string> {
  const { store, scope } = reader;
  // A cut text may end within a secret, which masking then misses. The details and payloads contain the whole texts.
  const items = outline.map(({ error: _, tools: __, ...run }) => run);
  const texts = await mapInTurns(items, (item) => masked(item));
  yield pairOf(`/query/traces/${traceId}`, `{"items":[${texts.join()}]}`);
  const byId = new Map(items.map((run) => [run.id, run]));
  const feedback = grouped(await store.feedback(scope, [traceId]), ({ run_id }) => run_id);
  let left = LENGTH_MAX;
  for await (const text of store.runs(scope, parsedQuery({ traceId }))) {
    if (left <= 0 || byId.size === 0) return;
    const run: StoredRun = parseExact(text);
    const shown = byId.get(run.id);
    if (shown === undefined) continue;
    byId.delete(run.id);
    const given = feedback.get(run.id);
    const details = {
      ...summaryOf(run.id, traceId, run, {}),
      ...shown,
      ...wholeTexts(run),
      ...(given && { feedback: given }),
    };
    for await (const pair of responsesOf(reader, run, details, (length) => length <= left)) {
      left -= pair.length;
      yield pair;
    }
  }
}

async function* responsesOf(
  { store, scope }: Reader,
  run: StoredRun,
  shown: object,
  hasRoom: (length: number) => boolean,
): AsyncGenerator<string> {
  const { id, error, extra, attachments = [] } = run;
  const path = `/query/runs/${id}`;
  const payloads: string[] = [];
  const payload_sizes: RunDetails['payload_sizes'] = {};
  for (const field of PAYLOAD_FIELDS) {
    if (run[field] === undefined) continue;
    const json = exactJson(run[field]);
    payload_sizes[field] = json.length;
    if (hasRoom(json.length)) payloads.push(pairOf(`${path}/${field}`, masked(run[field], field)));
  }
  const details = masked({ ...shown, error, extra, payload_sizes, ...(attachments.length > 0 && { attachments }) });
  for (const pair of [pairOf(path, details), ...payloads]) if (hasRoom(pair.length)) yield pair;
  const { attachments: masks = [] }: RunDetails = JSON.parse(details);
  for (const [index, { name, mime_type: type, size }] of attachments.entries()) {
    // Other attachments are left out, because their secrets cannot be masked.
    if (!IMAGE_TYPES.has(type) || size > IMAGE_BYTES_MAX || !hasRoom(size * 2)) continue;
    const image = await store.attachment(scope, id, name);
    if (image === undefined) continue;
    const uri = `data:${type};base64,${Buffer.from(image.bytes).toString('base64')}`;
    yield pairOf(`${path}/attachments/${pathSegment(masks[index]?.name ?? '')}`, JSON.stringify(uri));
  }
}

function pairOf(path: string, json: string): string {
  return `[${JSON.stringify(path)},${json}]`;
}

let redaction: Redaction | undefined;

/** Returns a value as JSON text, without secrets. The receiver has already limited the value. */
function masked(value: unknown, field?: string): string {
  redaction ??= redact({ patterns: secretPatterns });
  const all = Number.POSITIVE_INFINITY;
  return serialize(value, { depth: all, width: all, nodes: all, bytes: all, redaction }, field ? [field] : []);
}

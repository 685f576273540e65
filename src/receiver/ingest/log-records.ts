import { isDeepStrictEqual } from 'node:util';
import { diagnostics } from '../../base/diagnostics.ts';
import { messageOf } from '../../base/text.ts';
import { objects } from '../../otel/conventions/values.ts';
import type { SpanEventLike, SpanLike } from '../../otel/span-like.ts';
import { parseExact } from '../../payload/fields.ts';
import { serialize } from '../../payload/serialize.ts';
import type { Feedback } from '../domain/feedback.ts';
import { grouped } from '../domain/grouped.ts';
import { identityOf, type SpanIds, spanKey } from '../domain/identity.ts';
import { inTurns } from '../domain/in-turns.ts';
import type { Scope } from '../domain/query/query.ts';
import type { RunFields, RunOperation } from '../domain/run-message.ts';
import { derivedUuid } from '../domain/uuid.ts';
import { putIntoProject } from '../http/access/project-scope.ts';
import { feedbackOfBody } from '../http/feedback-fields.ts';
import type { Call } from '../http/route.ts';
import { addFeedbackBatch } from '../store/add-feedback.ts';
import type { MergedRun } from '../store/store.ts';
import { evaluationsOf } from './evaluations.ts';
import { CAPTURE, finishedRun } from './finished-run.ts';
import type { SpanRecord } from './otlp-logs.ts';

const RECORDS_MAX = 1_000;

/** A span, and the id of its run if it is known. */
type JoinedSpan = SpanIds & { readonly runId?: string | undefined };

/**
 * Stores log records and adds them to the runs of their spans, as far as these are stored. Returns the number of records
 * that were not stored because their span has too many.
 *
 * The log records of a span are stored as a run below the span. The run has no name, so no query returns it, and is kept
 * and deleted with its trace.
 */
export async function storeRecords(call: Call, records: readonly SpanRecord[]): Promise<number> {
  const { store, scope, limits, request } = call;
  const bySpan = grouped(records, ({ span }) => holderId(scope, span));
  const stored = new Map((await store.mergedRuns(scope, [...bySpan.keys()])).map((run) => [run.id, run]));
  let refused = 0;
  const operations: RunOperation[] = [];
  for await (const [id, own] of inTurns(bySpan)) {
    const { metadata: _, ...extra } = { ...stored.get(id)?.fields.extra };
    let room = RECORDS_MAX - Object.keys(extra).length;
    for (const { event } of own) {
      const json = serialize(event, CAPTURE.payload);
      const key = derivedUuid(json);
      if (Object.hasOwn(extra, key)) continue;
      if (room > 0) extra[key] = parseExact(json);
      else refused += 1;
      room -= 1;
    }
    const [{ span }] = own as [SpanRecord, ...SpanRecord[]];
    const otel = { trace_id: span.traceId, span_id: id.replaceAll('-', '').slice(16), parent_span_id: span.spanId };
    operations.push({ kind: 'post', id, fields: { extra: { ...extra, metadata: { otel } } }, attachments: [] });
  }
  limits?.take(scope.tenant, operations.length, request);
  await store.apply(scope, putIntoProject(scope, operations));
  const spans = records.map(({ span }) => span);
  await joinRecords(call, spans);
  return refused;
}

/**
 * Adds the stored log records of spans to the runs of these spans. Another request or receiver may store a record or a span
 * in the meantime, so this repeats until there is no new record.
 */
export async function joinRecords({ store, scope }: Call, spans: readonly JoinedSpan[]): Promise<void> {
  const byHolder = new Map(spans.map((span) => [holderId(scope, span), span]));
  const joined = new Map<string, number>();
  while (byHolder.size > 0) {
    const holders = await store.mergedRuns(scope, [...byHolder.keys()]);
    const changed = holders.flatMap(({ id, fields }) => {
      const [span, events] = [byHolder.get(id), eventsIn(fields)];
      if (span === undefined || events.length <= (joined.get(id) ?? 0)) return [];
      joined.set(id, events.length);
      return [{ span, events }];
    });
    if (changed.length === 0) return;
    const changedSpans = changed.map(({ span }) => span);
    const runs = await runsOf(store, scope, changedSpans);
    const found = changed.flatMap(({ span, events }) => {
      const run = runs.get(span.runId ?? spanKey(span));
      return run === undefined ? [] : [{ run, logged: spanWith(events, run) }];
    });
    const patches: RunOperation[] = [];
    const feedback: Feedback[] = [];
    for await (const { run, logged } of inTurns(found)) {
      patches.push(...patchOf(run, logged));
      feedback.push(...feedbackOn(logged, run.id));
    }
    if (patches.length > 0) await store.apply(scope, putIntoProject(scope, patches));
    if (feedback.length > 0) await addFeedbackBatch(store, scope, feedback);
  }
}

/** Returns the evaluations of a span as feedback. Invalid ones are left out, and one line says so. */
export function feedbackOn(span: SpanLike, runId: string): Feedback[] {
  return evaluationsOf(span, runId).flatMap(({ created_at, modified_at = created_at, ...fields }) => {
    try {
      const feedback = feedbackOfBody({ ...fields, run_id: runId }, ['span', 'events']);
      return [{ ...feedback, created_at, modified_at }];
    } catch (error) {
      diagnostics.warnOnce(
        'evaluation',
        `an evaluation of a span is not valid feedback: ${messageOf(error)}; logged once`,
      );
      return [];
    }
  });
}

/** Returns the runs of spans by id and by span key. Log records of a key for a project belong only to runs in this project. */
async function runsOf(store: Call['store'], scope: Scope, spans: readonly JoinedSpan[]) {
  const keys = spans.map((span) => span.runId ?? span);
  const runs = await store.mergedRuns(scope, keys);
  const own = runs.filter(({ fields }) => scope.project === undefined || fields.session_name === scope.project);
  return new Map(own.flatMap((run) => [[run.id, run] as const, [identityOf(run.fields).span, run] as const]));
}

function holderId({ project = '' }: Scope, { traceId, spanId }: SpanIds): string {
  return derivedUuid(`log records of ${traceId} ${spanId} ${project}`);
}

/** Returns the log records in the fields of their holder, in order of time. */
function eventsIn({ extra = {} }: RunFields): SpanEventLike[] {
  const { metadata: _, ...events } = extra;
  return (Object.values(events) as SpanEventLike[]).sort(
    ({ time: [a, aNs] }, { time: [b, bNs] }) => a - b || aNs - bNs,
  );
}

/** Returns a span that has only these events, and the error and the system message of the run. */
function spanWith(events: readonly SpanEventLike[], { fields }: MergedRun): SpanLike {
  const { error } = fields;
  const instructions = instructionsOf(fields);
  return {
    name: '',
    kind: 0,
    spanContext: () => ({ traceId: '', spanId: '', traceFlags: 0 }),
    startTime: [0, 0],
    endTime: [0, 0],
    // `Error` is the error of a span whose status has no message.
    status: error === undefined ? { code: 0 } : { code: 2, message: error === 'Error' ? '' : error },
    attributes: instructions === undefined ? {} : { 'gen_ai.system_instructions': instructions },
    links: [],
    events,
    resource: { attributes: {} },
  };
}

/** Returns the system message, if the span itself contains no other message. Instrumentations may log only the others. */
function instructionsOf(fields: RunFields): unknown {
  const [first, ...others] = objects(fields.inputs?.messages);
  const isAlone = others.length === 0 || fromLogsOf(fields).includes('inputs');
  return first?.role === 'system' && isAlone ? first.content : undefined;
}

function fromLogsOf({ extra }: RunFields): readonly string[] {
  const names = extra?.metadata?.from_logs;
  return Array.isArray(names) ? names : [];
}

/**
 * Returns a patch with what the log records add to a run, or no patch. What the span itself contains takes precedence.
 * The metadata `from_logs` names the fields that are from log records, so that further records can change these.
 */
function patchOf({ id, fields }: MergedRun, logged: SpanLike): RunOperation[] {
  const { texts, fields: read, attachments } = finishedRun(logged, undefined, true);
  const fromLogs = new Set(fromLogsOf(fields));
  const isReplaced = (field: string): boolean =>
    fromLogs.has(field) || (field === 'inputs' && instructionsOf(fields) !== undefined);
  const changes: RunFields = {};
  for (const field of ['inputs', 'outputs'] as const) {
    const found: object = parseExact(texts[field] ?? '{}');
    const own = fields[field];
    const value = isReplaced(field) ? { ...own, ...found } : { ...found, ...own };
    if (isDeepStrictEqual(value, own ?? {})) continue;
    changes[field] = value;
    fromLogs.add(field);
  }
  const isException = logged.events.some(({ name }) => name === 'exception');
  if (isException && read.error !== undefined && !fromLogs.has('error')) {
    changes.error = read.error;
    fromLogs.add('error');
  }
  if (Object.keys(changes).length === 0) return [];
  return [
    { kind: 'patch', id, fields: { ...changes, extra: { metadata: { from_logs: [...fromLogs] } } }, attachments },
  ];
}

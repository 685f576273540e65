import { shown } from '../../base/text.ts';
import { version } from '../../base/version.ts';
import { isFields, listOf } from '../../payload/fields.ts';
import { mapInTurns, takeTurn } from '../domain/in-turns.ts';
import type { RunOperation } from '../domain/run-message.ts';
import { checkProject, putIntoProject } from '../http/access/project-scope.ts';
import { HttpError, ValidationIssues } from '../http/http-error.ts';
import { hasZstd } from '../http/request-body.ts';
import { type Call, idOf, type Route, type RouteResponse, readJson } from '../http/route.ts';
import { requiredObject } from '../http/validation.ts';
import { addFeedbackBatch } from '../store/add-feedback.ts';
import { boundaryOf, parseMultipart } from './multipart.ts';
import { readBatch } from './multipart-batch.ts';
import { readRun } from './run-message.ts';

/** Documented HTTP routes for sending runs, and `GET /info`. */
export const interfaceRoutes: readonly Route[] = [
  { method: 'GET', path: '/info', admission: 'open', handle: serviceInfo },
  { method: 'POST', path: '/runs', admission: 'write', handle: (call) => ingestRecord(call, 'post') },
  { method: 'PATCH', path: '/runs/:run_id', admission: 'write', handle: (call) => ingestRecord(call, 'patch') },
  { method: 'POST', path: '/runs/multipart', admission: 'write', handle: postMultipart },
];

/** Additional HTTP routes that LangSmith clients use to send runs. */
export const fieldRoutes: readonly Route[] = [
  { method: 'POST', path: '/runs/batch', admission: 'write', handle: postBatch },
];

/** Response to `GET /info`, which tells clients the batch limits and the encodings of bodies. */
const INFO = {
  version,
  batch_ingest_config: { use_multipart_endpoint: true, size_limit: 1_000, size_limit_bytes: 20 * 1024 * 1024 },
  // The flags that LangSmith's clients read (`langsmith` 0.12, `src/client.ts`).
  instance_flags: { gzip_body_enabled: true, zstd_compression_enabled: hasZstd },
};

/** A larger batch gets status 413, and the client then splits it. */
const BATCH_RECORDS_MAX = 1_000;

export function serviceInfo(): RouteResponse {
  return { status: 200, body: INFO };
}

/**
 * Applies the simulated faults and the tenant's limits, then stores the operations in a request. Returns their number for
 * the response, and the number of those that the store discarded because their runs were deleted.
 */
export async function ingest(
  call: Call,
  operations: readonly RunOperation[],
): Promise<{ accepted: number; discarded?: number }> {
  const { request, store, scope, faults, limits, metrics, received } = call;
  limits?.take(scope.tenant, operations.length, request);
  const runIds = operations.map(({ id }) => id);
  await checkProject(call, runIds);
  await faults.apply(operations);
  // The body was parsed in this turn.
  await takeTurn();
  const discarded = operations.length > 0 ? ((await store.apply(scope, putIntoProject(scope, operations))) ?? 0) : 0;
  metrics.acceptedRuns += operations.length - discarded;
  metrics.discardedRuns += discarded;
  received?.(request, operations);
  return { accepted: operations.length, ...(discarded > 0 && { discarded }) };
}

async function ingestRecord(call: Call, kind: 'post' | 'patch'): Promise<RouteResponse> {
  const id = kind === 'patch' ? idOf(call, 'run_id') : undefined;
  const record = requiredObject(await readJson(call));
  const issues = new ValidationIssues();
  const operation = readRun({ format: 'simple', kind, strict: call.strict }, { record, loc: ['body'], id }, issues);
  issues.throwIfAny();
  return { status: 202, body: await ingest(call, [operation]) };
}

async function postMultipart(call: Call): Promise<RouteResponse> {
  const { request, bodies, store, scope, strict } = call;
  const boundary = boundaryOf(request.headers['content-type']);
  const { operations, feedback } = await bodies.read(request, scope.tenant, (body) =>
    readBatch(parseMultipart(body, boundary, strict), strict),
  );
  const body = await ingest(call, operations);
  if (feedback.length === 0) return { status: 202, body };
  const runIds = feedback.map(({ run_id }) => run_id);
  await checkProject(call, runIds);
  return { status: 202, body: { ...body, feedback: await addFeedbackBatch(store, scope, feedback) } };
}

/** Stores the runs in a body of the form `{ "post": [record, …], "patch": [record, …] }`. */
async function postBatch(call: Call): Promise<RouteResponse> {
  const batch = requiredObject(await readJson(call));
  const issues = new ValidationIssues();
  const lists = Object.keys(batch).filter(
    (field) => field !== 'post' && field !== 'patch' && listOf(batch[field]).some(isFields),
  );
  for (const field of lists) issues.add(['body', field], 'unknown_field', 'Expected lists only in `post` and `patch`');
  const records = (['post', 'patch'] as const).flatMap((kind) =>
    recordsIn(batch, kind).map((value, index) => ({ kind, value, loc: ['body', kind, index] })),
  );
  if (records.length > BATCH_RECORDS_MAX)
    throw new HttpError(413, `The batch has more than ${BATCH_RECORDS_MAX} posts and patches`);
  const operations = await mapInTurns(records, ({ kind, value, loc }) =>
    readRun({ format: 'batch', kind, strict: false }, { record: requiredObject(value, loc), loc }, issues),
  );
  issues.throwIfAny();
  return { status: 202, body: await ingest(call, operations) };
}

function recordsIn(batch: Record<string, unknown>, kind: 'post' | 'patch'): readonly unknown[] {
  const records = Object.hasOwn(batch, kind) ? (batch[kind] ?? []) : [];
  if (!Array.isArray(records)) throw new HttpError(400, `Expected \`${kind}\` to be an array, got ${shown(records)}`);
  return records;
}

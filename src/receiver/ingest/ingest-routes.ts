import { version } from '../../base/env.ts';
import { isObject } from '../../base/options.ts';
import { shown } from '../../base/text.ts';
import { addFeedbackBatch } from '../feedback/add-feedback.ts';
import { HttpError, ValidationIssues } from '../http-error.ts';
import { readRunQuery } from '../query/run-query.ts';
import { type Call, type Route, type RouteResponse, readJson } from '../route.ts';
import { ranged } from '../store/run-filter.ts';
import type { RunOperation } from '../store/store.ts';
import { validate } from '../validation.ts';
import { jsonTextPieces } from './json-pieces.ts';
import { boundaryOf, parseMultipart } from './multipart.ts';
import { type Batch, readBatch } from './multipart-batch.ts';
import { uuid } from './run-fields.ts';
import { readRun, rulesFor } from './run-message.ts';

/** The routes of the interface, and `GET /info`. */
export const interfaceRoutes: readonly Route[] = [
  { method: 'GET', path: '/info', admission: 'open', handle: () => ({ status: 200, body: INFO }) },
  { method: 'POST', path: '/runs', admission: 'write', handle: postRun },
  { method: 'PATCH', path: '/runs/:id', admission: 'write', handle: patchRun },
  { method: 'POST', path: '/runs/multipart', admission: 'write', handle: postMultipart },
];

/** Routes that other clients also use. */
export const fieldRoutes: readonly Route[] = [
  { method: 'POST', path: '/runs/batch', admission: 'write', handle: postBatch },
  { method: 'POST', path: '/runs/query', handle: queryRuns },
];

/** Clients use this information to size their batches. */
const INFO = {
  version,
  batch_ingest_config: { use_multipart_endpoint: true, size_limit: 100, size_limit_bytes: 20 * 1024 * 1024 },
  // Compression would only cost time on one machine.
  instance_flags: { gzip_body_enabled: false },
};

/** Maximum number of posts and patches per batch. Larger batches get 413, and senders then split them. */
const BATCH_OPERATIONS_MAX = 1_000;

/** Stores the operations of a request. */
export async function ingest(
  { store, scope, faults }: Call,
  operations: readonly RunOperation[],
): Promise<RouteResponse> {
  await faults.apply(operations);
  await store.apply(scope, operations);
  return { status: 202, body: { accepted: operations.length } };
}

async function postRun(call: Call): Promise<RouteResponse> {
  const record = objectOf(await readJson(call));
  const issues = new ValidationIssues();
  const read = readRun({ rules: rulesFor('simple', 'post', call.strict), record, loc: ['body'] }, issues);
  issues.throwIfAny();
  return ingest(call, [{ kind: 'post', ...read, attachments: [] }]);
}

async function patchRun(call: Call): Promise<RouteResponse> {
  const record = objectOf(await readJson(call));
  const issues = new ValidationIssues();
  const id = validate(uuid(true), call.parameters.id, ['path', 'run_id'], issues) ?? '';
  const read = readRun({ rules: rulesFor('simple', 'patch', call.strict), record, loc: ['body'], id }, issues);
  issues.throwIfAny();
  return ingest(call, [{ kind: 'patch', ...read, attachments: [] }]);
}

async function postMultipart(call: Call): Promise<RouteResponse> {
  const { request, bodies, store, scope, strict } = call;
  const boundary = boundaryOf(request.headers['content-type']);
  const read = (body: Buffer): Batch => readBatch(parseMultipart(body, boundary, strict), strict);
  const { operations, feedback } = await bodies.read(request, read);
  const answer = await ingest(call, operations);
  if (feedback.length === 0) return answer;
  return {
    status: 202,
    body: { accepted: operations.length, feedback: await addFeedbackBatch(store, scope, feedback) },
  };
}

/** Stores the runs of `{ "post": [record, …], "patch": [record, …] }`. */
async function postBatch(call: Call): Promise<RouteResponse> {
  const batch = objectOf(await readJson(call));
  const [posts, patches] = [recordsIn(batch, 'post'), recordsIn(batch, 'patch')];
  if (posts.length + patches.length > BATCH_OPERATIONS_MAX) {
    throw new HttpError(413, `The batch has more than ${BATCH_OPERATIONS_MAX} posts and patches`);
  }
  const issues = new ValidationIssues();
  const operationOf = (kind: 'post' | 'patch', value: unknown, index: number): RunOperation => {
    const record = objectOf(value, `${kind}[${index}]`);
    const loc = ['body', kind, index];
    return { kind, ...readRun({ rules: rulesFor('batch', kind, false), record, loc }, issues), attachments: [] };
  };
  const operations = [
    ...posts.map((value, index) => operationOf('post', value, index)),
    ...patches.map((value, index) => operationOf('patch', value, index)),
  ];
  issues.throwIfAny();
  return ingest(call, operations);
}

async function queryRuns(call: Call): Promise<RouteResponse> {
  const query = ranged(readRunQuery(await readJson(call)));
  return { status: 200, content: () => jsonTextPieces({}, 'runs', call.store.runs(call.scope, query)) };
}

function recordsIn(batch: Record<string, unknown>, kind: 'post' | 'patch'): readonly unknown[] {
  const records = Object.hasOwn(batch, kind) ? (batch[kind] ?? []) : [];
  if (!Array.isArray(records)) throw new HttpError(400, `Expected \`${kind}\` to be an array, got ${shown(records)}`);
  return records;
}

function objectOf(value: unknown, what = 'The body'): Record<string, unknown> {
  if (!isObject(value)) throw new HttpError(400, `${what} is not a JSON object`);
  return value;
}

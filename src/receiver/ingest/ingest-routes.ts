import { version } from '../../base/env.ts';
import { addFeedbackBatch } from '../feedback/add-feedback.ts';
import { readRunQuery } from '../query/run-query.ts';
import { type Answer, type Call, type Route, readJson } from '../route.ts';
import type { RunOperation } from '../store/store.ts';
import { readJsonBatch, readPatch, readPost } from './json-ingestion.ts';
import { jsonPieces } from './json-pieces.ts';
import { boundaryOf, parseMultipart } from './multipart.ts';
import { type Batch, readBatch } from './multipart-batch.ts';

/** The response to `GET /info`, which clients use to size their batches. It is not part of the interface. */
const INFO = {
  version,
  batch_ingest_config: { use_multipart_endpoint: true, size_limit: 100, size_limit_bytes: 20 * 1024 * 1024 },
  // Compression would only cost time on one machine.
  instance_flags: { gzip_body_enabled: false },
};

/** The routes of the interface. */
export const interfaceRoutes: readonly Route[] = [
  { method: 'GET', path: /^\/info$/, admission: 'open', handle: () => ({ status: 200, body: INFO }) },
  {
    method: 'POST',
    path: /^\/runs\/multipart$/,
    admission: 'write',
    handle: async (call) => {
      const { request, bodies, strict } = call;
      const boundary = boundaryOf(request.headers['content-type']);
      const read = (body: Buffer): Batch => readBatch(parseMultipart(body, boundary, strict), strict);
      const { operations, feedback } = await bodies.read(request, read);
      const answer = await applied(call, operations);
      if (feedback.length === 0) return answer;
      return {
        ...answer,
        body: { accepted: operations.length, feedback: await addFeedbackBatch(call.store, feedback) },
      };
    },
  },
  {
    method: 'POST',
    path: /^\/runs$/,
    admission: 'write',
    handle: async (call) => applied(call, [readPost(await readJson(call), call.strict)]),
  },
  {
    method: 'PATCH',
    path: /^\/runs\/(?!(?:multipart|batch|query)$)(?<id>[^/]+)$/,
    admission: 'write',
    handle: async (call) => applied(call, [readPatch(await readJson(call), call.parameters.id ?? '', call.strict)]),
  },
];

/** Routes that other clients also use. */
export const fieldRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: /^\/runs\/batch$/,
    admission: 'write',
    handle: async (call) => applied(call, readJsonBatch(await readJson(call))),
  },
  {
    method: 'POST',
    path: /^\/runs\/query$/,
    handle: async (call) => {
      const runs = await call.store.runs(readRunQuery(await readJson(call)));
      return { status: 200, content: () => jsonPieces({}, 'runs', runs) };
    },
  },
];

async function applied(call: Call, operations: readonly RunOperation[]): Promise<Answer> {
  await keep(call, operations);
  return { status: 202, body: { accepted: operations.length } };
}

/** Stores the operations of a request, which have been validated. */
export async function keep({ store, faults, spanRuns }: Call, operations: readonly RunOperation[]): Promise<void> {
  await faults.apply(operations);
  const placed = spanRuns.place(operations);
  try {
    await store.apply(placed);
  } catch (error) {
    spanRuns.putBack(operations, placed);
    throw error;
  }
}

import { isObject } from '../../base/options.ts';
import { shown } from '../../base/text.ts';
import { Findings, type Location, Refusal } from '../refusal.ts';
import type { RunOperation } from '../store/store.ts';
import { validate } from '../validation.ts';
import { uuid } from './run-fields.ts';
import { readRun, rulesFor } from './run-message.ts';

/** Maximum number of posts and patches per batch. Larger batches get 413, and senders then split them. */
export const BATCH_OPERATIONS_MAX = 1_000;

/** Returns the operation of a `POST /runs`. */
export function readPost(body: unknown, strict: boolean): RunOperation {
  const issues = new Findings();
  const read = readRun({ rules: rulesFor('simple', 'post', strict), record: objectOf(body), loc: ['body'] }, issues);
  issues.refuseIfAny();
  return { kind: 'post', ...read, attachments: [] };
}

/** Returns the operation of a `PATCH /runs/{run_id}`. */
export function readPatch(body: unknown, runId: string, strict: boolean): RunOperation {
  const issues = new Findings();
  const id = validate(uuid(true), runId, ['path', 'run_id'], issues) ?? '';
  const read = readRun(
    { rules: rulesFor('simple', 'patch', strict), record: objectOf(body), loc: ['body'], id },
    issues,
  );
  issues.refuseIfAny();
  return { kind: 'patch', ...read, attachments: [] };
}

/** Returns the operations of a `POST /runs/batch`: `{ "post": [record, …], "patch": [record, …] }`. */
export function readJsonBatch(body: unknown): RunOperation[] {
  const issues = new Findings();
  const batch = objectOf(body);
  const [posts, patches] = [recordsOf(batch, 'post'), recordsOf(batch, 'patch')];
  if (posts.length + patches.length > BATCH_OPERATIONS_MAX) {
    throw new Refusal(413, `The batch has more than ${BATCH_OPERATIONS_MAX} posts and patches`);
  }
  const operation = (kind: 'post' | 'patch', value: unknown, index: number): RunOperation => {
    const record = objectOf(value, `${kind}[${index}]`);
    const loc: Location = ['body', kind, index];
    return { kind, ...readRun({ rules: rulesFor('batch', kind, false), record, loc }, issues), attachments: [] };
  };
  const operations = [
    ...posts.map((value, index) => operation('post', value, index)),
    ...patches.map((value, index) => operation('patch', value, index)),
  ];
  issues.refuseIfAny();
  return operations;
}

function recordsOf(batch: Record<string, unknown>, kind: 'post' | 'patch'): readonly unknown[] {
  const records = Object.hasOwn(batch, kind) ? (batch[kind] ?? []) : [];
  if (!Array.isArray(records)) throw new Refusal(400, `Expected \`${kind}\` to be an array, got ${shown(records)}`);
  return records;
}

function objectOf(value: unknown, what = 'The body'): Record<string, unknown> {
  if (!isObject(value)) throw new Refusal(400, `${what} is not a JSON object`);
  return value;
}

import { isObject } from '../../base/options.ts';
import { shown } from '../../base/text.ts';
import { Findings, type Location, Refusal } from '../refusal.ts';
import type { RunOperation } from '../store/store.ts';
import { parseUuid } from './run-fields.ts';
import { readRun, rulesFor } from './run-message.ts';

/** Posts and patches of one batch; beyond it 413, at which senders split. Multipart bounds its parts likewise. */
export const BATCH_OPERATIONS_MAX = 1_000;

/** The operation of `POST /runs`. */
export function readPost(body: unknown, strict: boolean): RunOperation {
  const findings = new Findings();
  const read = readRun({ rules: rulesFor('simple', 'post', strict), record: objectOf(body), loc: ['body'] }, findings);
  findings.refuseIfAny();
  return { kind: 'post', ...read, attachments: [] };
}

/** The operation of `PATCH /runs/{run_id}`. */
export function readPatch(body: unknown, runId: string, strict: boolean): RunOperation {
  const findings = new Findings();
  const id = parseUuid(runId, true);
  if (id === undefined) {
    findings.add(['path', 'run_id'], 'uuid', `Expected the id in the path to be a UUID, got ${shown(runId)}`);
  }
  const message = { rules: rulesFor('simple', 'patch', strict), record: objectOf(body), loc: ['body'] };
  const read = readRun(id === undefined ? message : { ...message, id }, findings);
  findings.refuseIfAny();
  return { kind: 'patch', ...read, attachments: [] };
}

/** The operations of the field's `POST /runs/batch`: `{ "post": [record, …], "patch": [record, …] }`. */
export function readJsonBatch(body: unknown): RunOperation[] {
  const findings = new Findings();
  const batch = objectOf(body);
  const [posts, patches] = [recordsOf(batch, 'post'), recordsOf(batch, 'patch')];
  if (posts.length + patches.length > BATCH_OPERATIONS_MAX) {
    throw new Refusal(413, `The batch has more than ${BATCH_OPERATIONS_MAX} posts and patches`);
  }
  const operation = (kind: 'post' | 'patch', value: unknown, index: number): RunOperation => {
    const record = objectOf(value, `${kind}[${index}]`);
    const loc: Location = ['body', kind, index];
    return { kind, ...readRun({ rules: rulesFor('batch', kind, false), record, loc }, findings), attachments: [] };
  };
  const operations = [
    ...posts.map((value, index) => operation('post', value, index)),
    ...patches.map((value, index) => operation('patch', value, index)),
  ];
  findings.refuseIfAny();
  return operations;
}

function recordsOf(batch: Record<string, unknown>, kind: 'post' | 'patch'): readonly unknown[] {
  const records = Object.hasOwn(batch, kind) ? (batch[kind] ?? []) : [];
  if (!Array.isArray(records)) throw new Refusal(400, `Expected \`${kind}\` to be an array, got ${shown(records)}`);
  return records;
}

function objectOf(value: unknown, what = 'The body'): Record<string, unknown> {
  if (!isObject(value)) throw new Refusal(400, `${what} is no JSON object`);
  return value;
}

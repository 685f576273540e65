import { Findings, type Location, shown } from './findings.ts';
import { isObject } from './json.ts';
import { Refusal } from './refusal.ts';
import { parseUuid } from './run-fields.ts';
import { readRun } from './run-message.ts';
import { rulesFor } from './run-rules.ts';
import type { RunOperation } from './store.ts';

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
  const operations = (['post', 'patch'] as const).flatMap((kind) => {
    const records = Object.hasOwn(batch, kind) ? (batch[kind] ?? []) : [];
    if (!Array.isArray(records)) throw new Refusal(400, `Expected \`${kind}\` to be an array, got ${shown(records)}`);
    const rules = rulesFor('batch', kind, false);
    return records.map((record: unknown, index): RunOperation => {
      const loc: Location = ['body', kind, index];
      return {
        kind,
        ...readRun({ rules, record: objectOf(record, `${kind}[${index}]`), loc }, findings),
        attachments: [],
      };
    });
  });
  findings.refuseIfAny();
  return operations;
}

function objectOf(value: unknown, what = 'The body'): Record<string, unknown> {
  if (!isObject(value)) throw new Refusal(400, `${what} is no JSON object`);
  return value;
}

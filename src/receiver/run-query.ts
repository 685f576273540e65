import { type Check, type Checks, checkedOptions, WHOLE_FROM_1 } from '../base/checked-options.ts';
import { RunspanError } from '../base/errors.ts';
import { shown } from '../base/text.ts';
import { isObject } from './json.ts';
import { Findings, Refusal } from './refusal.ts';
import { parseUuid } from './run-fields.ts';
import type { RunQuery } from './store.ts';

const TEXT: Check = ['text', (value) => typeof value === 'string'];

const CHECKS: Checks<RunQuery> = {
  project: TEXT,
  traceId: ['a UUID', (value) => uuidOf(value) !== undefined],
  name: TEXT,
  runType: TEXT,
  limit: WHOLE_FROM_1,
};

/** Runs in one answer. */
const RUNS_MAX = 100;

/**
 * What the field's `POST /runs/query` asks for, of which one form is taken: `{ "trace": id, "limit": count }`. A trace has
 * to be named, so that nobody can read what they do not know of.
 */
export function readRunQuery(body: unknown): RunQuery {
  if (!isObject(body)) throw new Refusal(400, 'The body is no JSON object');
  const findings = new Findings();
  const traceId = uuidOf(body.trace);
  if (traceId === undefined)
    findings.add(['body', 'trace'], 'uuid', `Expected \`trace\` to be a UUID, got ${shown(body.trace)}`);
  const { limit = RUNS_MAX } = body;
  const [expected, holds] = WHOLE_FROM_1;
  if (!holds(limit))
    findings.add(['body', 'limit'], 'integer', `Expected \`limit\` to be ${expected}, got ${shown(limit)}`);
  findings.refuseIfAny();
  return { traceId: traceId as string, limit: Math.min(limit as number, RUNS_MAX) };
}

/** The query with its trace id in the one spelling, or a RunspanError that names what is wrong. */
export function checkedQuery(query: RunQuery): RunQuery {
  const checked: RunQuery = checkedOptions('the query', query, CHECKS);
  return checked.traceId === undefined ? checked : { ...checked, traceId: checkedTraceId(checked.traceId) };
}

/** The id in the one spelling, from either. */
export function checkedTraceId(traceId: unknown): string {
  const id = uuidOf(traceId);
  if (id !== undefined) return id;
  throw new RunspanError('RUNSPAN_INVALID_OPTION', `Expected \`traceId\` to be a UUID, got ${shown(traceId)}`);
}

function uuidOf(value: unknown): string | undefined {
  return typeof value === 'string' ? parseUuid(value, true) : undefined;
}

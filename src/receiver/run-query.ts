import { type Check, type Checks, checkedOptions, WHOLE_FROM_1 } from '../base/checked-options.ts';
import { RunspanError } from '../base/errors.ts';
import { shown } from '../base/text.ts';
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

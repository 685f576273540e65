import { RunspanError } from '../base/errors.ts';
import { shown } from './findings.ts';
import { parseUuid } from './run-fields.ts';
import type { RunQuery, StoredRun } from './store.ts';

/** The query with its trace id in the one spelling, or a RunspanError that names what is wrong. */
export function checkedQuery(query: RunQuery): RunQuery {
  const checked: RunQuery = {};
  for (const [key, value] of Object.entries(query)) {
    if (value === undefined) continue;
    if (key === 'limit') {
      if (!Number.isSafeInteger(value) || value < 1) throw invalid(key, 'a whole number from 1', value);
      checked.limit = value;
    } else if (key === 'traceId') {
      checked.traceId = checkedTraceId(value);
    } else if (key === 'project' || key === 'name' || key === 'runType') {
      if (typeof value !== 'string') throw invalid(key, 'text', value);
      checked[key] = value;
    } else {
      throw new RunspanError(
        'RUNSPAN_INVALID_OPTION',
        `Expected a query by project, traceId, name, runType or limit, got \`${key}\``,
      );
    }
  }
  return checked;
}

/** The id in the one spelling, from either. */
export function checkedTraceId(traceId: unknown): string {
  const id = typeof traceId === 'string' ? parseUuid(traceId, true) : undefined;
  if (id === undefined) throw invalid('traceId', 'a UUID', traceId);
  return id;
}

/** Whether a run is among those asked for, its trace and the limit aside. */
export function matches({ project, name, runType }: RunQuery, run: Partial<StoredRun>): boolean {
  return (
    (project === undefined || run.session_name === project || run.session_id === project) &&
    (name === undefined || run.name === name) &&
    (runType === undefined || run.run_type === runType)
  );
}

function invalid(key: string, expected: string, value: unknown): RunspanError {
  return new RunspanError('RUNSPAN_INVALID_OPTION', `Expected \`${key}\` to be ${expected}, got ${shown(value)}`);
}

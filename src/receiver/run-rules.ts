import type { RunField, Spellings } from './run-fields.ts';

/** What a run record has to look like, by the way it comes and by how strictly the interface is taken. */
export interface RunRules extends Spellings {
  readonly required: readonly RunField[];
  /** Fields that belong into parts of their own. */
  readonly apart: readonly RunField[];
  /** Whether one of `session_name` and `session_id` must be there. */
  readonly session: boolean;
  /** Whether a child must name its parent, although its dotted order does. */
  readonly parent: boolean;
  /** Whether a field that the record does not know is wrong; else it is passed over. */
  readonly knownOnly: boolean;
}

/** `batch` is the field's JSON batch, which the interface does not have. */
export type Way = 'multipart' | 'simple' | 'batch';

export function rulesFor(way: Way, kind: 'post' | 'patch', strict: boolean): RunRules {
  return {
    required: required(way, kind, strict),
    apart: strict && way === 'multipart' ? ['inputs', 'outputs', 'events'] : [],
    session: strict && kind === 'post',
    parent: strict && way === 'multipart',
    knownOnly: strict,
    // The interface has ids without hyphens on simple ingestion only.
    hexIds: !strict || way === 'simple',
    loose: !strict,
  };
}

function required(way: Way, kind: 'post' | 'patch', strict: boolean): readonly RunField[] {
  if (way === 'simple') {
    if (kind === 'post') return ['id', 'name', 'run_type', 'inputs', 'start_time'];
    // `outputs` may be missing even in strict mode: a run that failed has none.
    return strict ? ['end_time'] : [];
  }
  if (way === 'batch') return kind === 'post' ? ['id', 'name', 'run_type', 'start_time'] : ['id'];
  const record: readonly RunField[] = ['trace_id', 'dotted_order', 'name', 'run_type', 'start_time'];
  if (strict) return ['id', ...record, ...(kind === 'patch' ? ['end_time' as const] : [])];
  return kind === 'post' ? record : ['trace_id', 'dotted_order'];
}

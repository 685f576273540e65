import type { TextField } from '../domain/query/query.ts';

/** A field whose value is a number. `latency` is in microseconds. `cached` is the cached share of the input tokens. */
export type AmountField = 'latency' | 'tokens' | 'input_tokens' | 'output_tokens' | 'cost' | 'cached';

/** Text that a value must equal, start with, end with or contain. Every value contains the empty text. */
export interface TextPattern {
  readonly kind: 'equal' | 'prefix' | 'suffix' | 'contains';
  readonly text: string;
}

/** A limit for a number. */
export interface Bound {
  readonly operator: '=' | '>' | '>=' | '<' | '<=';
  readonly amount: number;
}

/**
 * Compares one field of a run. The run matches if one of the field's values matches any of `values`, or all of
 * `bounds`. If neither is given, the run must have a value. The value of `feedback` is the score or the field `value`, that
 * of a note the comment. `root` and `internal` have neither: the run must be the root of its trace, or a framework must have
 * added it for itself. `outcome` is that of the trace.
 */
export interface Comparison {
  readonly field: TextField | AmountField | 'feedback' | 'root' | 'internal' | 'outcome';
  /** Key of the metadata or of the feedback. */
  readonly key?: string;
  readonly values?: readonly TextPattern[];
  readonly bounds?: readonly Bound[];
}

/**
 * A condition of a filter. `all`: all conditions match. `some`: at least one matches. `anyRun`: the condition matches a
 * run of the same trace in the projects of the filter.
 */
export type FilterNode =
  | { readonly all: readonly FilterNode[] }
  | { readonly some: readonly FilterNode[] }
  | { readonly not: FilterNode }
  | { readonly anyRun: FilterNode }
  | Comparison;

import * as v from 'valibot';
import { RunspanError } from '../../base/errors.ts';
import { ignoreErrors } from '../../base/guard.ts';
import { shown } from '../../base/text.ts';
import { type Check, type Checks, checkedOptions, WHOLE_FROM_1, wholeFrom } from '../../config/checker.ts';
import type {
  ExportQuery,
  ListQuery,
  RunQuery,
  StatisticsQuery,
  SuggestionField,
  SuggestionQuery,
  ThreadQuery,
} from '../domain/query/query.ts';
import {
  GROUP_KEYS,
  isGroupKey,
  metadataKeyOf,
  RANK_KEYS,
  SORT_KEYS,
  SUGGESTION_FIELDS,
} from '../domain/query/query-keys.ts';
import { offsetsOf } from '../domain/statistics/time-buckets.ts';
import { type Parsed, parsedQuery } from '../filter/run-filter.ts';
import { HttpError, ValidationIssues } from '../http/http-error.ts';
import { parseUuid, uuidSchema } from '../http/run-fields.ts';
import { checkKnownParameters, requiredObject, type Schema, validated } from '../http/validation.ts';

const TEXT: Check = ['a string', (value) => typeof value === 'string'];

function oneOf(values: readonly string[]): Check {
  return [values.join(', '), (value) => values.includes(value as string)];
}

const FILTER_CHECKS: Checks<Omit<RunQuery, 'limit'>> = {
  project: TEXT,
  traceId: ['a UUID', (value) => uuidOf(value) !== undefined],
  filter: TEXT,
};

const RUN_CHECKS: Checks<RunQuery> = { ...FILTER_CHECKS, limit: WHOLE_FROM_1 };

const EXPORT_CHECKS: Checks<ExportQuery> = {
  ...RUN_CHECKS,
  list: oneOf(['runs', 'traces']),
  format: oneOf(['jsonl', 'csv', 'otlp']),
};

const LIST_CHECKS: Checks<ListQuery> = {
  ...FILTER_CHECKS,
  sort: oneOf(SORT_KEYS),
  order: oneOf(['ascending', 'descending']),
  // Only the store can validate the cursor, because each kind of store has its own cursor format.
  cursor: TEXT,
  limit: wholeFrom(1, 1_000),
};

const { traceId: _, sort: __, order, ...threadChecks } = LIST_CHECKS;
const THREAD_CHECKS: Checks<ThreadQuery> = threadChecks;
const { project, cursor, limit } = LIST_CHECKS;
const TURN_CHECKS: Checks<TurnQuery> = { project, order, cursor, limit };
const PROJECT_CHECKS: Checks<ProjectQuery> = { cursor, limit };

const STATISTICS_CHECKS: Checks<StatisticsQuery> = {
  ...FILTER_CHECKS,
  groupBy: [`${GROUP_KEYS.join(', ')} or meta.KEY`, isGroupKey],
  groups: wholeFrom(1, 200),
  rankBy: oneOf(RANK_KEYS),
  buckets: wholeFrom(1, 500),
  timeZone: [
    'an IANA time zone or minutes east of UTC',
    (value) => typeof value === 'string' && ignoreErrors(() => offsetsOf(value)) !== undefined,
  ],
  series: wholeFrom(0, 20),
};

const SUGGESTION_CHECKS: Checks<SuggestionQuery> = {
  field: [
    `${SUGGESTION_FIELDS.join(', ')} or meta.KEY`,
    (value) =>
      SUGGESTION_FIELDS.includes(value as SuggestionField) ||
      (typeof value === 'string' && metadataKeyOf(value) !== undefined),
  ],
  text: TEXT,
  project,
};

/** Validates and parses a query. If a field is invalid, throws a RunspanError that names the field. */
export function checkedQuery(query: RunQuery): Parsed<RunQuery> {
  return parsedQuery(checkedOptions('the query', query, RUN_CHECKS));
}

type TurnQuery = Pick<ListQuery, 'project' | 'order' | 'cursor' | 'limit'>;
type ProjectQuery = Pick<ListQuery, 'cursor' | 'limit'>;

/** Reads a query from URL parameters. Throws an HTTP 422 error if a parameter is invalid. */
type QueryReader<Query extends RunQuery> = (search: URLSearchParams) => Parsed<Query>;

export const readListQuery: QueryReader<ListQuery> = readerOf(LIST_CHECKS);
export const readTraceQuery: QueryReader<ListQuery> = readerOf(LIST_CHECKS, 'traces');
export const readThreadQuery: QueryReader<ThreadQuery> = readerOf(THREAD_CHECKS, 'traces');
export const readTurnQuery: QueryReader<TurnQuery> = readerOf(TURN_CHECKS);
export const readProjectQuery: QueryReader<ProjectQuery> = readerOf(PROJECT_CHECKS);
export const readExportQuery: QueryReader<ExportQuery> = readerOf(EXPORT_CHECKS);
export const readStatisticsQuery: QueryReader<StatisticsQuery> = readerOf(STATISTICS_CHECKS);

export function readSuggestionQuery(search: URLSearchParams): SuggestionQuery {
  const query = readParameters(search, SUGGESTION_CHECKS);
  if (query.field !== undefined) return query;
  throw new HttpError(422, [{ loc: ['query', 'field'], msg: '`field` is missing', type: 'missing' }]);
}

const RUNS_MAX = 100;

/**
 * Reads the body of `POST /runs/query`. Only `{ "trace": id, "limit": count }` is supported. The trace id is required,
 * so a client can read only traces whose id it knows.
 */
export function readRunQuery(body: unknown): Parsed<RunQuery> {
  const { trace: traceId, limit } = validated(bodySchema, requiredObject(body), ['body']);
  return parsedQuery({ traceId, limit: Math.min(limit, RUNS_MAX) });
}

const [COUNT, isCount] = WHOLE_FROM_1;
export const count: Schema<number> = v.custom<number>(isCount, COUNT);
const bodySchema = v.object({ trace: uuidSchema(true), limit: v.optional(count, RUNS_MAX) });

/** Validates a trace id and returns it in lower case with hyphens. */
export function checkedTraceId(traceId: unknown): string {
  const id = uuidOf(traceId);
  if (id !== undefined) return id;
  throw new RunspanError('RUNSPAN_INVALID_OPTION', `Expected \`traceId\` to be a UUID, got ${shown(traceId)}`);
}

function readerOf<Query extends RunQuery & { readonly list?: 'runs' | 'traces' }>(
  checks: Checks<Query>,
  list?: 'runs' | 'traces',
): QueryReader<Query> {
  return (search) => {
    const query = readParameters(search, checks);
    try {
      return parsedQuery(query, query.list ?? list);
    } catch (error) {
      if (!(error instanceof RunspanError)) throw error;
      throw new HttpError(422, [{ loc: ['query', 'filter'], msg: error.message, type: 'value' }]);
    }
  };
}

function uuidOf(value: unknown): string | undefined {
  return typeof value === 'string' ? parseUuid(value, true) : undefined;
}

const NUMBERS: readonly string[] = ['limit', 'groups', 'buckets', 'series'];

/** Reads query fields from URL parameters with snake-case names. */
function readParameters<Query extends object>(search: URLSearchParams, checks: Checks<Query>): Query {
  const issues = new ValidationIssues();
  const query: Record<string, unknown> = {};
  checkKnownParameters(search, Object.keys(checks).map(snakeCase), issues);
  for (const field of Object.keys(checks)) {
    const parameter = snakeCase(field);
    const loc = ['query', parameter];
    const [text, ...others] = search.getAll(parameter);
    if (text === undefined) continue;
    if (others.length > 0) {
      issues.add(loc, 'repeated', `Expected \`${parameter}\` once, got ${others.length + 1} values`);
      continue;
    }
    const value = NUMBERS.includes(field) ? (text.trim() === '' ? Number.NaN : Number(text)) : text;
    const [expected, holds] = checks[field as keyof Query];
    if (holds(value)) query[field] = value;
    else issues.add(loc, 'value', `Expected \`${parameter}\` to be ${expected}, got ${shown(text)}`);
  }
  issues.throwIfAny();
  return query as Query;
}

function snakeCase(field: string): string {
  return field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

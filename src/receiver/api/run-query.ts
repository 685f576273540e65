import * as v from 'valibot';
import { RunspanError } from '../../base/errors.ts';
import { shown } from '../../base/text.ts';
import { type Check, type Checks, checkedOptions, isObject, WHOLE_FROM_1, wholeFrom } from '../../config/checker.ts';
import { parseIsoTimestamp } from '../../run/time.ts';
import type {
  ExportQuery,
  ListQuery,
  RunQuery,
  StatisticsQuery,
  SuggestionField,
  SuggestionQuery,
  ThreadQuery,
} from '../domain/query.ts';
import { GROUP_KEYS, isGroupKey, metadataKeyOf, SORT_KEYS, SUGGESTION_FIELDS } from '../domain/query-keys.ts';
import { RUN_STATUSES } from '../domain/run-view.ts';
import { filterProblem } from '../filter/parser.ts';
import { HttpError, ValidationIssues } from '../http/http-error.ts';
import { parseUuid, uuid } from '../http/run-fields.ts';
import { checkKnownParameters, jsonObject, validated } from '../http/validation.ts';

/** Maximum number of statuses in a query. The same limit applies to tags and to metadata keys. */
const CONDITIONS_MAX = 20;

const TEXT: Check = ['a string', (value) => typeof value === 'string'];
const TIME: Check = [
  'an ISO 8601 time',
  (value) => typeof value === 'string' && parseIsoTimestamp(value) !== undefined,
];
const AMOUNT: Check = ['a number from 0', (value) => typeof value === 'number' && value >= 0];

function oneOf(values: readonly string[]): Check {
  return [values.join(', '), (value) => values.includes(value as string)];
}

function some([expected, holds]: Check): Check {
  return [
    `${expected}, or an array of up to ${CONDITIONS_MAX} such values`,
    (value) => (Array.isArray(value) ? value.length <= CONDITIONS_MAX && value.every(holds) : holds(value)),
  ];
}

const FILTER_CHECKS: Checks<Omit<RunQuery, 'limit'>> = {
  project: TEXT,
  traceId: ['a UUID', (value) => uuidOf(value) !== undefined],
  name: TEXT,
  runType: TEXT,
  model: TEXT,
  thread: TEXT,
  status: some(oneOf(RUN_STATUSES)),
  tag: some(TEXT),
  metadata: [
    `an object of up to ${CONDITIONS_MAX} strings or nulls`,
    (value) =>
      isObject(value) &&
      Object.keys(value).length <= CONDITIONS_MAX &&
      Object.values(value).every((text) => text === null || typeof text === 'string'),
  ],
  startedFrom: TIME,
  startedBefore: TIME,
  latencyMsMin: AMOUNT,
  latencyMsMax: AMOUNT,
  tokensMin: AMOUNT,
  tokensMax: AMOUNT,
  text: TEXT,
  filter: [
    'a valid filter',
    (value) => typeof value === 'string' && filterProblem(value) === undefined,
    (value) => (typeof value === 'string' ? `${shown(value)}: ${filterProblem(value)}` : shown(value)),
  ],
};

const RUN_CHECKS: Checks<RunQuery> = { ...FILTER_CHECKS, limit: WHOLE_FROM_1 };

const EXPORT_CHECKS: Checks<ExportQuery> = {
  ...RUN_CHECKS,
  list: oneOf(['runs', 'traces']),
  format: oneOf(['jsonl', 'csv']),
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

const STATISTICS_CHECKS: Checks<StatisticsQuery> = {
  ...FILTER_CHECKS,
  groupBy: [`${GROUP_KEYS.join(', ')} or meta.KEY`, isGroupKey],
  groups: wholeFrom(1, 200),
  buckets: wholeFrom(1, 500),
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

/** Validates a query. If a field is invalid, throws a RunspanError that names the field. */
export function checkedQuery(query: RunQuery): RunQuery {
  return spelled(checkedOptions('the query', query, RUN_CHECKS));
}

/** Reads a list query from URL parameters. Throws an HTTP 422 error if a parameter is invalid. */
export function readListQuery(search: URLSearchParams): ListQuery {
  return spelled(readParameters(search, LIST_CHECKS));
}

export function readThreadQuery(search: URLSearchParams): ThreadQuery {
  return readParameters(search, THREAD_CHECKS);
}

/** Selects one page of the turns of a thread. */
type TurnQuery = Pick<ListQuery, 'project' | 'order' | 'cursor' | 'limit'>;

export function readTurnQuery(search: URLSearchParams): TurnQuery {
  return readParameters(search, TURN_CHECKS);
}

export function readExportQuery(search: URLSearchParams): ExportQuery {
  return spelled(readParameters(search, EXPORT_CHECKS));
}

export function readStatisticsQuery(search: URLSearchParams): StatisticsQuery {
  return spelled(readParameters(search, STATISTICS_CHECKS));
}

export function readSuggestionQuery(search: URLSearchParams): SuggestionQuery {
  const query = readParameters(search, SUGGESTION_CHECKS);
  if (query.field !== undefined) return query;
  throw new HttpError(422, [{ loc: ['query', 'field'], msg: '`field` is missing', type: 'missing' }]);
}

/** Maximum number of runs in a response. */
const RUNS_MAX = 100;

/**
 * Reads the body of `POST /runs/query`. Only `{ "trace": id, "limit": count }` is supported. The trace id is required,
 * so a client can read only traces whose id it knows.
 */
export function readRunQuery(body: unknown): RunQuery {
  const { trace: traceId, limit } = validated(bodySchema, jsonObject(body), ['body']);
  return { traceId, limit: Math.min(limit, RUNS_MAX) };
}

const [COUNT, isCount] = WHOLE_FROM_1;
const bodySchema = v.object({
  trace: uuid(true),
  limit: v.optional(v.custom<number>(isCount, COUNT), RUNS_MAX),
});

/** Validates a trace id and returns it in lower case with hyphens. */
export function checkedTraceId(traceId: unknown): string {
  const id = uuidOf(traceId);
  if (id !== undefined) return id;
  throw new RunspanError('RUNSPAN_INVALID_OPTION', `Expected \`traceId\` to be a UUID, got ${shown(traceId)}`);
}

function spelled<Query extends { traceId?: string }>(query: Query): Query {
  return query.traceId === undefined ? query : { ...query, traceId: checkedTraceId(query.traceId) };
}

function uuidOf(value: unknown): string | undefined {
  return typeof value === 'string' ? parseUuid(value, true) : undefined;
}

/** URL parameters that may be repeated. */
const REPEATABLE: readonly string[] = ['status', 'tag', 'metadata'];
const NUMBERS: readonly string[] = [
  'latencyMsMin',
  'latencyMsMax',
  'tokensMin',
  'tokensMax',
  'limit',
  'groups',
  'buckets',
  'series',
];

/**
 * Reads query fields from URL parameters with snake-case names. The `metadata` parameter has the form `key=value`, or
 * `key` to match any value.
 */
function readParameters<Query extends object>(search: URLSearchParams, checks: Checks<Query>): Query {
  const issues = new ValidationIssues();
  const query: Record<string, unknown> = {};
  checkKnownParameters(search, Object.keys(checks).map(snakeCase), issues);
  for (const field of Object.keys(checks)) {
    const parameter = snakeCase(field);
    const loc = ['query', parameter];
    const given = search.getAll(parameter);
    if (given.length === 0) continue;
    if (given.length > 1 && !REPEATABLE.includes(field)) {
      issues.add(loc, 'repeated', `Expected \`${parameter}\` once, got ${given.length} values`);
      continue;
    }
    const value = givenValue(field, given);
    const [expected, holds, show] = checks[field as keyof Query];
    if (holds(value)) query[field] = value;
    else {
      const got = typeof show === 'function' ? show(value) : shown(given.join(', '));
      issues.add(loc, 'value', `Expected \`${parameter}\` to be ${expected}, got ${got}`);
    }
  }
  issues.throwIfAny();
  return query as Query;
}

function givenValue(field: string, given: readonly string[]): unknown {
  const [first = ''] = given;
  if (field === 'metadata') {
    return Object.fromEntries(
      given.map((text) => {
        const at = text.indexOf('=');
        return at === -1 ? [text, null] : [text.slice(0, at), text.slice(at + 1)];
      }),
    );
  }
  if (REPEATABLE.includes(field)) return given;
  if (!NUMBERS.includes(field)) return first;
  return first.trim() === '' ? Number.NaN : Number(first);
}

function snakeCase(field: string): string {
  return field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

import * as v from 'valibot';
import { RunspanError } from '../../base/errors.ts';
import { parseIsoTimestamp } from '../../run/time.ts';
import type { ListQuery } from '../domain/query/query.ts';
import { HAS_ERROR, translateFilter } from '../filter/langsmith-filter.ts';
import { condition, searchWords } from '../filter/parser.ts';
import { ALL_TIMES, among, type Parsed, parsedQuery } from '../filter/run-filter.ts';
import { HttpError, ValidationIssues } from '../http/http-error.ts';
import type { Call } from '../http/route.ts';
import { uuidSchema } from '../http/run-fields.ts';
import { checkKnownFields, parsed, text, validated } from '../http/validation.ts';
import { projectsWithIds } from './langsmith-projects.ts';
import { count } from './run-query.ts';

const PAGE_ITEMS = 100;
/** Maximum number of ids, and of children of one run. */
const IDS_MAX = 1_000;

const id = uuidSchema(true);
const ids = v.pipe(v.array(id, 'an array of UUIDs'), v.maxLength(IDS_MAX, `at most ${IDS_MAX} UUIDs`));
const boolean = v.boolean('true or false');
const time = parsed('an ISO 8601 time', (value) => (typeof value === 'string' ? parseIsoTimestamp(value) : undefined));

const schema = v.object({
  session: v.optional(ids),
  id: v.optional(ids),
  trace: v.optional(id),
  parent_run: v.optional(id),
  is_root: v.optional(boolean),
  execution_order: v.optional(v.literal(1, '1')),
  run_type: v.optional(text),
  error: v.optional(boolean),
  start_time: v.optional(time),
  end_time: v.optional(time),
  query: v.optional(text),
  filter: v.optional(text),
  trace_filter: v.optional(text),
  tree_filter: v.optional(text),
  order: v.optional(v.picklist(['asc', 'desc'], 'asc, desc'), 'desc'),
  select: v.optional(v.array(text, 'an array of strings')),
  cursor: v.optional(text),
  limit: v.optional(count, PAGE_ITEMS),
});
type Body = v.InferOutput<typeof schema>;

/** Fields that change no result of the receiver. */
const WITHOUT_EFFECT: readonly string[] = ['skip_pagination', 'skip_prev_cursor', 'data_source_type'];

/**
 * Translates the body of `POST /runs/query` to a query of the store. `select` is undefined if all fields are returned.
 * Throws an HTTP 422 error if a field is invalid, or if the receiver cannot answer it.
 */
export async function readLangSmithQuery(
  given: object,
  call: Call,
): Promise<{ query: Parsed<ListQuery>; select: readonly string[] | undefined }> {
  const fields = Object.entries(given).filter(([name, value]) => value !== null && !WITHOUT_EFFECT.includes(name));
  const body = checkedBody(Object.fromEntries(fields));
  const { filter } = parsedFilter(body);
  const query = {
    order: body.order === 'asc' ? ('ascending' as const) : ('descending' as const),
    limit: Math.min(body.limit, PAGE_ITEMS),
    ...(body.cursor && { cursor: body.cursor }),
    filter: {
      ...filter,
      conditions: [
        ...filter.conditions,
        ...(body.id === undefined ? [] : [among('run', body.id)]),
        ...(body.session === undefined ? [] : [among('project', await projectsWithIds(body.session, call))]),
        ...(body.parent_run === undefined ? [] : [among('run', await childrenOf(body.parent_run, call))]),
      ],
    },
  };
  return { query, select: body.select };
}

function checkedBody(fields: object): Body {
  const issues = new ValidationIssues();
  checkKnownFields(schema, fields, ['body'], issues);
  issues.throwIfAny();
  const body = validated(schema, fields, ['body']);
  if (body.session ?? body.id ?? body.trace ?? body.parent_run) return body;
  throw invalid('trace', 'Expected `trace`, `session`, `id` or `parent_run`');
}

/** Parses the fields that the filter language can express. */
function parsedFilter(body: Body): Parsed<ListQuery> {
  const isRoot = body.is_root ?? (body.execution_order === undefined ? undefined : true);
  const own = [
    body.trace && condition('trace', body.trace),
    isRoot !== undefined && (isRoot ? 'is:root' : 'NOT is:root'),
    body.run_type && condition('type', body.run_type),
    body.error !== undefined && (body.error ? HAS_ERROR : `NOT ${HAS_ERROR}`),
    body.query && searchWords(body.query),
  ];
  const { text: filter, ranges } = translated('filter', body.filter);
  const ofRoot = translated('trace_filter', body.trace_filter);
  const ofAnyRun = translated('tree_filter', body.tree_filter);
  if (ofRoot.ranges.length + ofAnyRun.ranges.length > 0) {
    throw invalid('filter', 'start_time can be compared only in `filter`');
  }
  const others = [ofRoot.text && `any(is:root ${ofRoot.text})`, ofAnyRun.text && `any(${ofAnyRun.text})`];
  const query = inField('filter', () =>
    parsedQuery<ListQuery>({ filter: [...own, filter, ...others].filter(Boolean).join(' ') }),
  );
  const { start_time: fromUs = ALL_TIMES.fromUs, end_time: beforeUs = ALL_TIMES.beforeUs } = body;
  const all = [query.filter.range, { fromUs, beforeUs }, ...ranges];
  const range = {
    fromUs: Math.max(...all.map((one) => one.fromUs)),
    beforeUs: Math.min(...all.map((one) => one.beforeUs)),
  };
  return { filter: { ...query.filter, range } };
}

function translated(field: string, given = ''): ReturnType<typeof translateFilter> {
  return given.trim() === '' ? { text: '', ranges: [] } : inField(field, () => translateFilter(given));
}

/** Returns the ids of the children of a run. The filter language has no field for the parent. */
async function childrenOf(parentId: string, { store, scope }: Call): Promise<string[]> {
  const parent = await store.details(scope, parentId);
  const outline = parent === undefined ? [] : await store.outline(scope, parent.trace_id);
  const runs = outline.map((one) => JSON.parse(one) as { id: string; parent_run_id?: string });
  const children = runs.filter((run) => run.parent_run_id === parentId).map((run) => run.id);
  if (children.length <= IDS_MAX) return children;
  throw invalid('parent_run', `The run has more than ${IDS_MAX} children: query its \`trace\` instead`);
}

function inField<Result>(field: string, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof RunspanError)) throw error;
    throw invalid(field, `The receiver cannot answer this filter: ${error.message}`);
  }
}

function invalid(field: string, msg: string): HttpError {
  return new HttpError(422, [{ loc: ['body', field], msg, type: 'value' }]);
}

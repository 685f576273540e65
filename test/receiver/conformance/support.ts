import { deepStrictEqual } from 'node:assert/strict';
import { isObject } from '#src/config/checker.ts';
import type { Feedback } from '#src/receiver/domain/feedback.ts';
import type { ListPage, ListQuery, RunQuery, Scope, StatisticsQuery } from '#src/receiver/domain/query/query.ts';
import type { RunFields, RunOperation } from '#src/receiver/domain/run-message.ts';
import type { RunOutline, StoredRun } from '#src/receiver/domain/run-view.ts';
import { type Parsed, parsedQuery } from '#src/receiver/filter/run-filter.ts';
import { DEFAULT_SCOPE, type Store } from '#src/receiver/store/store.ts';

export interface StoreCase {
  readonly title: string;
  /** Tests the rule. No tenant has runs. Rejects with an AssertionError if the store breaks the rule. */
  readonly run: (store: Store) => Promise<void>;
}

export const SCOPE: Scope = DEFAULT_SCOPE;

/** Returns the run id for a number. Ids sort in the same order as numbers. */
export function id(number: number): string {
  return `0193b3a0-0000-7000-8000-${number.toString(16).padStart(12, '0')}`;
}

export function numberOf(runId: string): number {
  return Number.parseInt(runId.slice(-12), 16);
}

const FIRST_MS = Date.UTC(2026, 10, 20, 7);

/** Returns the timestamp that is `number` seconds after a fixed time. */
export function second(number: number): string {
  return new Date(FIRST_MS + number * 1_000).toISOString().replace('Z', '000Z');
}

export function stamp(number: number): string {
  return second(number).replaceAll(/[-:.]/g, '') + id(number);
}

interface RunOptions extends RunFields {
  /** Number of the parent run, which is the root of the trace. */
  readonly parent?: number;
  /** Latency in milliseconds. Omit the latency if the run has not ended. */
  readonly ms?: number;
}

/** Returns a post for a run, as an exporter sends it. The run starts at `second(number)`. */
export function post(number: number, { parent, ms, ...fields }: RunOptions = {}): RunOperation {
  const line = parent === undefined ? [number] : [parent, number];
  const operation = simple(number, ms === undefined ? fields : { ms, ...fields });
  return {
    ...operation,
    fields: {
      trace_id: id(parent ?? number),
      dotted_order: line.map(stamp).join('.'),
      ...(parent === undefined ? {} : { parent_run_id: id(parent) }),
      ...operation.fields,
    },
  };
}

/**
 * Returns a post without `dotted_order` and `trace_id`, as in `POST /runs`. `parent` is the number of the parent run.
 */
export function simple(number: number, { parent, ms, ...fields }: RunOptions = {}): RunOperation {
  const end = ms === undefined ? {} : { end_time: second(number + ms / 1_000) };
  const above = parent === undefined ? {} : { parent_run_id: id(parent) };
  const whole = { name: `run ${number}`, run_type: 'chain', start_time: second(number), session_name: 'shop' };
  return { kind: 'post', id: id(number), fields: { ...whole, ...end, ...above, ...fields }, attachments: [] };
}

/** Returns the post of a run for an OpenTelemetry span. `trace` is the number of the OpenTelemetry trace. */
export function span(number: number, parent?: number, trace = 0): RunOperation {
  const spanId = (of: number): string => of.toString(16).padStart(16, '0');
  const parentId = parent === undefined ? {} : { parent_span_id: spanId(parent) };
  const otel = { trace_id: id(trace).replaceAll('-', ''), span_id: spanId(number), ...parentId };
  return simple(number, { extra: { metadata: { otel } } });
}

export function patch(number: number, fields: RunFields): RunOperation {
  return { kind: 'patch', id: id(number), fields, attachments: [] };
}

export function feedback(number: number, fields: Partial<Feedback> = {}): Feedback {
  const at = second(0);
  return { id: id(900), run_id: id(number), key: 'liked', score: 1, created_at: at, modified_at: at, ...fields };
}

/** Texts with characters that SQL, JSON, URLs, patterns or searches treat specially. */
export const SPECIAL_TEXTS: readonly string[] = [
  ...["it's", 'a "quoted" text', 'back\\slash', "\\'", '\\n', 'line\nbreak\ttab\r\n', '{x:String}'],
  ...['{p0:String} ?', '100%', '_', '[a-z]*', '🦜', 'e\u0301', 'İstanbul ΟΔΟΣ', '東京', 'NULL', '\\N', '1e21'],
  ...["'; DROP TABLE runs; --", '  padded  ', '__proto__', '{"a":1}'],
];

export async function applyEach(store: Store, operations: readonly RunOperation[]): Promise<void> {
  for (const operation of operations) await store.apply(SCOPE, [operation]);
}

export async function runsOf(store: Store, query: RunQuery = {}, scope: Scope = SCOPE): Promise<StoredRun[]> {
  const runs: StoredRun[] = [];
  for await (const text of store.runs(scope, parsedQuery(query))) runs.push(JSON.parse(text));
  return runs;
}

export async function outlined(store: Store, number: number, scope: Scope = SCOPE): Promise<RunOutline[]> {
  return (await store.outline(scope, id(number))).map((text) => JSON.parse(text));
}

/** Adds up the tokens in a trace whose outlines do not have `usage_counts: false`. */
export async function countedTokens(store: Store, number: number): Promise<number> {
  const counted = (await outlined(store, number)).filter((run) => run.usage_counts !== false);
  return counted.reduce((sum, { usage }) => sum + (usage?.total_tokens ?? 0), 0);
}

export async function numbersOf(store: Store, query: RunQuery = {}): Promise<number[]> {
  return (await runsOf(store, query)).map((run) => numberOf(run.id));
}

export async function listed(store: Store, query: ListQuery = {}): Promise<number[]> {
  return (await store.list(SCOPE, parsedQuery(query))).items.map((run) => numberOf(run.id));
}

export async function traced(store: Store, query: ListQuery = {}): Promise<number[]> {
  return (await store.traces(SCOPE, parsedQuery(query))).items.map((run) => numberOf(run.id));
}

export async function pagesOf<Item>(
  read: (query: Parsed<ListQuery>) => Promise<ListPage<Item>>,
  query: ListQuery,
): Promise<Item[][]> {
  const pages: Item[][] = [];
  for (let cursor: string | undefined, at = 0; at < 100; at += 1) {
    const page = await read(parsedQuery({ ...query, ...(cursor !== undefined && { cursor }) }));
    pages.push(page.items);
    cursor = page.next;
    if (cursor === undefined) break;
  }
  return pages;
}

export function statisticsOf(
  store: Store,
  query: StatisticsQuery = {},
  scope: Scope = SCOPE,
): ReturnType<Store['statistics']> {
  return store.statistics(scope, parsedQuery(query));
}

export function equal(actual: unknown, expected: unknown, message?: string): void {
  deepStrictEqual(normalized(actual), normalized(expected), message);
}

function normalized(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}

/** Asserts that a value has the expected fields. Additional fields are allowed. */
export function matches(actual: unknown, expected: unknown): void {
  equal(restricted(normalized(actual), normalized(expected)), expected);
}

function restricted(actual: unknown, expected: unknown): unknown {
  if (Array.isArray(actual) && Array.isArray(expected)) return actual.map((item, at) => restricted(item, expected[at]));
  if (!isObject(actual) || !isObject(expected)) return actual;
  return Object.fromEntries(
    Object.keys(expected).flatMap((key) =>
      Object.hasOwn(actual, key) ? [[key, restricted(actual[key], expected[key])]] : [],
    ),
  );
}

export function table<Row extends readonly [string, ...unknown[]]>(
  title: string,
  rows: readonly Row[],
  run: (store: Store, row: Row) => Promise<void>,
): StoreCase[] {
  return rows.map((row) => ({ title: `${title}: ${row[0]}`, run: (store) => run(store, row) }));
}

/**
 * Returns a store that adds `prefix` to the names of tenants. Tests share a store, because opening one takes longer than a
 * test.
 */
export function withOwnTenants<Of extends Store>(store: Of, prefix: string): Of {
  const own = (value: unknown): unknown =>
    isObject(value) && 'tenant' in value ? { ...value, tenant: `${prefix} ${value.tenant}` } : value;
  return new Proxy(store, {
    get(target, name: keyof Of & string) {
      const method: unknown = target[name];
      return typeof method === 'function' ? (...args: unknown[]) => method.apply(target, args.map(own)) : method;
    },
  });
}

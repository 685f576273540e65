import { isObject } from '../../config/checker.ts';
import { defined } from '../../payload/fields.ts';
import { END_REASON, endReasonOf } from '../../run/record.ts';
import { canonicalId } from '../../run/time.ts';
import type { RunFields, RunOperation } from './run-message.ts';
import { merged, type SmallFields } from './summary.ts';

/** The ids of an OpenTelemetry span, in lower case. */
export interface SpanIds {
  /** 32 hex digits. */
  readonly traceId: string;
  /** 16 hex digits. */
  readonly spanId: string;
}

/** The names by which the messages of a run mean its trace, its OpenTelemetry span and its parent. */
export interface Identity {
  readonly traceId?: string | undefined;
  /** The OpenTelemetry trace id as a UUID. */
  readonly otelTraceId?: string | undefined;
  readonly span?: string | undefined;
  readonly parentId?: string | undefined;
  /** Key of the parent span. Undefined if the run has a `parent_run_id` or a `dotted_order`, which take precedence. */
  readonly parentSpan?: string | undefined;
}

/** An id of zeros is invalid: https://www.w3.org/TR/trace-context/#trace-id */
const TRACE_ID = /^(?!0+$)[0-9a-f]{32}$/i;
const SPAN_ID = /^(?!0+$)[0-9a-f]{16}$/i;

/** Returns the key of a span: the second half of the trace id, followed by the span id, as 32 hex digits. */
export function spanKey({ traceId, spanId }: SpanIds): string {
  return (traceId.slice(16) + spanId).toLowerCase();
}

export function identityOf({ trace_id, parent_run_id: parentId, dotted_order, extra }: RunFields): Identity {
  const otel = extra?.metadata?.otel;
  if (!isObject(otel) || !matches(TRACE_ID, otel.trace_id)) return { traceId: trace_id, parentId };
  const { trace_id: otelId, span_id: spanId, parent_span_id: above } = otel;
  const otelTraceId = canonicalId(otelId);
  // An export of a trace whose root had not arrived contains this id as its `trace_id`. It is not the id of a run.
  const trace = { traceId: trace_id === otelTraceId ? undefined : trace_id, parentId, otelTraceId };
  if (!matches(SPAN_ID, spanId)) return trace;
  const isPlaced = parentId !== undefined || dotted_order !== undefined;
  const hasParent = !isPlaced && matches(SPAN_ID, above) && above !== spanId;
  return {
    ...trace,
    span: spanKey({ traceId: otelId, spanId }),
    parentSpan: hasParent ? spanKey({ traceId: otelId, spanId: above }) : undefined,
  };
}

function matches(pattern: RegExp, value: unknown): value is string {
  return typeof value === 'string' && pattern.test(value);
}

interface IdentifiedRun {
  readonly id: string;
  readonly identity: Identity;
}

/** Returns the names of each run in a batch. Of several, the first counts. */
export function identitiesIn(messages: Iterable<IdentifiedRun>): Map<string, Identity> {
  const identities = new Map<string, Identity>();
  for (const { id, identity } of messages) {
    const earlier = identities.get(id);
    identities.set(id, earlier === undefined ? identity : { ...identity, ...defined({ ...earlier }) });
  }
  return identities;
}

export interface KnownTrace {
  /** The name with which the trace was created, or its `trace_id`. */
  readonly id: string;
  /** Whether messages name the trace by a `trace_id`, which is then its id. */
  readonly isNamed: boolean;
}

/** The traces of a tenant, by the names that can mean them. */
export interface TraceNames<Trace extends KnownTrace> {
  ofRun(id: string): Trace | undefined;
  named(name: string): Trace | undefined;
  create(id: string, isNamed: boolean): Trace;
  /** Adds a name: an OpenTelemetry trace id, or the `trace_id` of a trace that was not named. */
  setName(trace: Trace, name: string, isTraceId: boolean): void;
}

/**
 * Decides the traces of runs when their messages arrive. A stored run stays in its trace, see `isProvisional` for the
 * exception. A new run belongs to the trace that the first of these names: its `trace_id`, its OpenTelemetry trace id, its
 * parent, if that is stored or in the same batch, and the run's own id.
 *
 * If a message has a `trace_id` and an OpenTelemetry trace id, both name one trace, unless each already names one.
 */
export function decideTraces<Trace extends KnownTrace>(
  runs: ReadonlyMap<string, Identity>,
  names: TraceNames<Trace>,
): ReadonlyMap<string, Trace> {
  const decided = new Map<string, Trace>();
  for (const id of runs.keys()) {
    const path = new Set<string>();
    let trace: Trace | undefined;
    let top = id;
    // A loop instead of recursion, because parents may be nested deeply.
    for (let at: string | undefined = id; at !== undefined && trace === undefined; ) {
      const identity = runs.get(at);
      trace = decided.get(at) ?? (identity === undefined ? names.ofRun(at) : traceOf(at, identity, names));
      if (identity === undefined) break;
      // If parents form a cycle, the run of the cycle that is reached first names the trace.
      top = at;
      if (path.has(at)) break;
      path.add(at);
      at = identity.parentId;
    }
    trace ??= names.named(top) ?? names.create(top, false);
    for (const one of path) decided.set(one, trace);
  }
  return decided;
}

/** Returns the trace of a run that is stored, or whose trace has a name in its messages. */
function traceOf<Trace extends KnownTrace>(id: string, identity: Identity, names: TraceNames<Trace>) {
  const { traceId, otelTraceId, parentId, parentSpan } = identity;
  const stored = names.ofRun(id);
  const ofSpans = otelTraceId === undefined ? undefined : names.named(otelTraceId);
  let named: Trace | undefined;
  if (traceId !== undefined) {
    const known = names.named(traceId);
    const isUnnamed = ofSpans?.isNamed === false && ofSpans.id === otelTraceId;
    const isOfSpans = known === undefined && isUnnamed && (stored ?? ofSpans) === ofSpans;
    // Answers show an unnamed trace with the id of its root, which a client may send as a `trace_id`.
    const ofRun = names.ofRun(traceId);
    named = known ?? (isOfSpans ? ofSpans : ofRun?.isNamed === false ? ofRun : undefined);
    const isName = isOfSpans || named?.id === traceId || named !== ofRun;
    if (named?.isNamed === false && isName) names.setName(named, traceId, true);
    if (stored === undefined) named ??= names.create(traceId, true);
  } else if (ofSpans === undefined && otelTraceId !== undefined && (parentId ?? parentSpan) === undefined) {
    // Other runs have named their trace by this one, which is its root.
    const own = names.named(id);
    if (own?.id === id) named = own;
  }
  const trace = stored ?? named ?? ofSpans;
  if (otelTraceId === undefined || ofSpans !== undefined) return trace;
  if (trace === undefined) return names.create(otelTraceId, false);
  if (trace.id !== otelTraceId) names.setName(trace, otelTraceId, false);
  return trace;
}

/**
 * Returns whether the trace of a run is not known yet: the run names a parent, no message names the trace, and the parent
 * had not arrived, so that the run itself has named the trace.
 */
export function isProvisional({ id, identity }: IdentifiedRun, trace: KnownTrace | undefined): boolean {
  const { parentId, otelTraceId } = identity;
  return trace?.id === id && !trace.isNamed && parentId !== undefined && otelTraceId === undefined;
}

/**
 * Returns whether the trace of the parent takes over a provisional trace: its runs and its names. A run that names
 * another project than its parent stays apart, because its client's key may be limited to that project.
 */
export function mayJoin({ session_name, session_id }: RunFields, projects: readonly string[]): boolean {
  const named = [session_name, session_id].filter((name) => name !== undefined);
  return named.length === 0 || named.some((name) => projects.includes(name));
}

/**
 * The age of a record. Of the records of a run, one of a greater age takes precedence, and of several with the same age the
 * one that arrived last.
 */
export type Age = 0 | 1 | 2 | 3;
const OPEN: Age = 0;
/** The end of a run that was interrupted or given up, or whose program has ended. */
export const INCOMPLETE: Age = 1;
const ENDED: Age = 2;
export const PATCH: Age = 3;

export function ageOf(kind: RunOperation['kind'], fields: SmallFields): Age {
  const reason = endReasonOf(fields);
  const hasEnd = fields.end_time !== undefined;
  if (hasEnd && (reason === 'incomplete' || reason === 'interrupted')) return INCOMPLETE;
  if (kind === 'patch') return PATCH;
  return hasEnd ? ENDED : OPEN;
}

/**
 * The ages of the records that a run's fields are from, by name (see `namesOf`). Fields that are not listed are from records
 * of the age `*`, which is that of the first record.
 */
export type FieldAges = Record<string, Age>;

/** Names of the fields that tell how a run has ended. A later end may lack some of them. */
const END: readonly string[] = ['error', 'end_time', `extra/${END_REASON}`];

/**
 * Merges a record into the fields of a run, and adds it to the ages. `payloads` names fields that are stored elsewhere, so
 * the ages list all of them. Returns the fields, and the names of the payloads that take precedence.
 */
export function withRecord<Fields extends SmallFields>(
  ages: FieldAges,
  stored: Fields,
  age: Age,
  record: Fields,
  payloads: readonly string[] = [],
): { readonly fields: Fields; readonly payloads: readonly string[] } {
  const { '*': first = age } = ages;
  const isFirst = ages['*'] === undefined;
  ages['*'] = first;
  for (const name of isFirst ? payloads : []) ages[name] = age;
  if (isFirst) return { fields: record, payloads };
  const names = [...namesOf(record), ...payloads];
  const isPost = age < PATCH && record.name !== undefined;
  // The post of a key without a project sets the project of the run, whatever limited keys have sent.
  const known = isPost && record.limited_key === undefined ? withoutProject(ages, stored) : stored;
  const storedNames = new Set([...namesOf(known), ...Object.keys(ages)]);
  const ageOfField = (name: string): Age => (storedNames.has(name) ? (ages[name] ?? first) : OPEN);
  const refused = new Set(names.filter((name) => ageOfField(name) > age));
  if (record.limited_key && known.limited_key === undefined && Object.values(ages).some((one) => one < PATCH)) {
    for (const name of PROJECT) refused.add(name);
  }
  if (age === INCOMPLETE && ageOfField('end_time') > age) for (const name of END) refused.add(name);
  const isEnd = age > INCOMPLETE && names.includes('end_time');
  const replaced = new Set(END.filter((name) => isEnd && ageOfField(name) === INCOMPLETE));
  for (const name of replaced) delete ages[name];
  const accepted = names.filter((name) => !refused.has(name));
  for (const name of accepted) {
    if (age === first && !payloads.includes(name)) delete ages[name];
    else ages[name] = age;
  }
  return {
    fields: merged(withoutNames(known, replaced), withoutNames(record, refused)),
    payloads: payloads.filter((name) => !refused.has(name)),
  };
}

/** The project of a run, and whether limited keys have decided it. */
const PROJECT: readonly string[] = ['session_name', 'session_id', 'limited_key'];

/** Returns fields without the project that limited keys gave the run. */
function withoutProject<Fields extends SmallFields>(ages: FieldAges, stored: Fields): Fields {
  if (stored.limited_key === undefined) return stored;
  for (const name of PROJECT) delete ages[name];
  return withoutNames(stored, new Set(PROJECT));
}

/** Returns field names. Those in `extra` and `extra.metadata` are included, because both are merged by key. */
function namesOf({ extra = {}, limited_key: _, ...fields }: SmallFields): string[] {
  const { metadata = {}, ...others } = extra;
  return [
    ...Object.keys(fields),
    ...Object.keys(others).map((key) => `extra/${key}`),
    ...Object.keys(metadata).map((key) => `metadata/${key}`),
  ];
}

function withoutNames<Fields extends SmallFields>(all: Fields, names: ReadonlySet<string>): Fields {
  if (names.size === 0) return all;
  const { extra, ...fields } = all;
  const rest = (prefix: string, values: object): object =>
    Object.fromEntries(Object.entries(values).filter(([key]) => !names.has(prefix + key)));
  if (extra === undefined) return rest('', fields) as Fields;
  const { metadata, ...others } = extra;
  const restOfMetadata = metadata && { metadata: rest('metadata/', metadata) };
  return { ...rest('', fields), extra: { ...rest('extra/', others), ...restOfMetadata } } as Fields;
}

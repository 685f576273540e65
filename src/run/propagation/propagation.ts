import { clock } from '../../base/clock.ts';
import { diagnostics } from '../../base/diagnostics.ts';
import { guard, ignoreErrors, ignoreRejection } from '../../base/guard.ts';
import { shareInstances } from '../../base/shared.ts';
import type { Check } from '../../config/checker.ts';
import { isFields, parsedJson } from '../../payload/fields.ts';
import { types } from '../../platform/node.ts';
import { heldRateOf, type RunContext, type RunOwner, remoteContext, SAMPLED } from '../context/context.ts';
import { currentContext, spanOf } from '../context/current.ts';
import { enclosingSpanIds, inheritedFrom, otelTraceIdOf, sinkOf } from '../context/inherited.ts';
import { placement } from '../context/placement.ts';
import { type HeldTrace, type Project, projectText } from '../encoded-run.ts';
import { withMetadata, withTags } from '../fields.ts';
import { hexOf, newRunId } from '../ids.ts';
import { Run } from '../run.ts';
import { usableOptions } from '../run-options.ts';
import { currentSink, noopSink, type RunSink } from '../sink.ts';
import { dottedOrder, parseDottedOrder } from '../time.ts';

/** Maximum length of the `dotted_order` in a header, in characters. Leaves room for about 137 ancestors. */
const ORDER_MAX = 8_192;

/**
 * Maximum length of a project name or tag in baggage, in characters. Longer project names are cut. Longer tags are
 * ignored.
 */
const TEXT_MAX = 1_000;

/** Maximum number of tags in baggage. Any further tags are ignored. */
const TAGS_MAX = 100;

/** The headers that may contain a run, each with the prefix of its baggage keys. The first valid header is used. */
const DIALECTS = [
  ['runspan-trace', 'runspan'],
  ['langsmith-trace', 'langsmith'],
] as const;

/**
 * Request headers: a `Headers` object, the headers from `node:http`, or a plain object. Header names are
 * case-insensitive.
 */
export type HeadersLike =
  | { get(name: string): string | null | undefined }
  | Readonly<Record<string, string | readonly string[] | number | undefined>>;

/** A field that `fromHeaders` can read from request headers in addition to the run ids. */
export type HeaderField = 'project' | 'tags' | 'metadata';

/** The options that `fromHeaders` accepts. */
export interface FromHeadersOptions {
  /**
   * Fields that nested runs inherit from the request headers. List a field only if you trust every caller to set it on
   * your runs.
   * @default []
   */
  accept?: readonly HeaderField[];
}

const HEADER_FIELDS: readonly unknown[] = ['project', 'tags', 'metadata'] satisfies HeaderField[];

export const acceptCheck: Check = [
  "a list of 'project', 'tags' and 'metadata'",
  (value) => Array.isArray(value) && value.every((field) => HEADER_FIELDS.includes(field)),
];

/** A run from another process, worker or message, read from headers. Pass a `RemoteRun` to `withRun`. */
export class RemoteRun {
  readonly id: string;
  readonly traceId: string;
  readonly dottedOrder: string;
  readonly #inherited: InheritedFields;

  /** @internal */
  constructor(order: string, [traceId, id]: readonly [first: string, last: string], inherited: InheritedFields) {
    this.id = id;
    this.traceId = traceId;
    this.dottedOrder = order;
    this.#inherited = inherited;
  }

  /** @internal */
  contextFor(sink: RunSink): RunContext {
    const { payload } = sink.capture;
    const { id, traceId, dottedOrder } = this;
    const { tags, metadata, spanIds, sampled, heldRate, ...others } = this.#inherited;
    const isHeld = heldRate !== undefined && sink.hold !== undefined;
    const sampling = isHeld ? { sampled: true, heldRate } : { sampled };
    const shown = {
      tags: withTags(undefined, tags, payload),
      metadata: metadata && withMetadata(undefined, metadata, payload),
    };
    return remoteContext({ id, traceId, dottedOrder, ...others, ...sampling, ...shown }, sink, spanIds);
  }
}

shareInstances({ RemoteRun });

interface InheritedFields {
  readonly project: Project | undefined;
  readonly tags: readonly string[] | undefined;
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
  readonly sampled: boolean;
  /** The sample rate by which the caller drops the trace, if it holds its runs. NaN if the rate is not known. */
  readonly heldRate?: number | undefined;
  /** The trace of a run above that this process records, if the trace is held. */
  readonly held?: HeldTrace | undefined;
  /** The trace id of the caller in OpenTelemetry, and the nearest span, if a span is above the caller's run or is the run. */
  readonly spanIds?: RunOwner['spanIds'];
}

/**
 * Reads the caller's run from request headers. Returns undefined if no header contains a run. With
 * `withRun(fromHeaders(request.headers), handler)`, runs in the handler become children of the caller's run.
 *
 * The run ids come from the `runspan-trace` header. If that header is missing or invalid, `langsmith-trace` is used.
 * The sampling decision comes from the W3C `baggage` header, or from a `traceparent` of the same trace. A project, tags
 * and metadata in the baggage are ignored unless `accept` lists these fields. Headers never set the endpoint or the API
 * key. Never throws.
 */
export function fromHeaders(headers: HeadersLike, options?: FromHeadersOptions): RemoteRun | undefined {
  try {
    const { accept = [] } = usableOptions<FromHeadersOptions>('fromHeaders', options, { accept: acceptCheck });
    for (const [header, prefix] of DIALECTS) {
      const order = innermostOrder(headerOf(headers, header));
      if (order === undefined || order.length > ORDER_MAX) continue;
      const segments = parseDottedOrder(order);
      const [first, last] = [segments?.at(0), segments?.at(-1)];
      if (first === undefined || last === undefined) continue;
      const baggage = parseBaggage(headerOf(headers, 'baggage') ?? '');
      const inherited = inheritedFields(baggage, prefix, accept);
      const traceparent = headerOf(headers, 'traceparent');
      const sampled = inherited.sampled && !isLeftOut(first.id, traceparent);
      const spanIds = spanIdsIn(baggageValue(baggage, `${prefix}-otel`), '') ?? spanIdsIn(traceparent, first.id);
      return new RemoteRun(order, [first.id, last.id], { ...inherited, sampled, spanIds });
    }
  } catch {
    // A getter on the headers threw an error.
  }
  return undefined;
}

/** Whether a `traceparent` of the same trace has the sampled flag 0. */
function isLeftOut(id: string, traceparent: string | undefined): boolean {
  const [, traceId, , flags = ''] = traceparent?.split('-') ?? [];
  return traceId === hexOf(id) && (Number.parseInt(flags, 16) & SAMPLED) === 0;
}

const TRACEPARENT = /^00-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-[\da-f]{2}$/;

/** Returns the ids in a `traceparent`, unless they are the digits of the run's own ids. */
function spanIdsIn(traceparent: string | undefined, firstId: string): InheritedFields['spanIds'] {
  const [, traceId, spanId] = TRACEPARENT.exec(traceparent ?? '') ?? [];
  return traceId === undefined || spanId === undefined || traceId === hexOf(firstId) ? undefined : { traceId, spanId };
}

function inheritedFields(baggage: BaggageMember[], prefix: string, accept: readonly HeaderField[]): InheritedFields {
  const accepted = (field: HeaderField, key: string = field): string | undefined =>
    accept.includes(field) ? baggageValue(baggage, `${prefix}-${key}`) : undefined;
  const projectId = accepted('project', 'project-id')?.slice(0, TEXT_MAX);
  const tags = accepted('tags');
  const metadata = parsedJson(accepted('metadata'));
  const held = baggageValue(baggage, `${prefix}-held`);
  const heldRate = Number(held);
  return {
    project: projectId ? { id: projectId } : accepted('project')?.slice(0, TEXT_MAX) || undefined,
    tags: tagsIn(prefix === 'langsmith' ? tags?.split(',') : parsedJson(tags)),
    metadata: isFields(metadata) ? metadata : undefined,
    sampled: baggageValue(baggage, `${prefix}-sampled`) !== 'false',
    heldRate: held === 'NaN' || (heldRate >= 0 && heldRate <= 1) ? heldRate : undefined,
  };
}

function tagsIn(tags: unknown): readonly string[] | undefined {
  if (!Array.isArray(tags)) return undefined;
  const valid = tags.filter((tag): tag is string => typeof tag === 'string' && tag !== '' && tag.length <= TEXT_MAX);
  return valid.length === 0 ? undefined : valid.slice(0, TAGS_MAX);
}

/**
 * Returns the dotted order in a header. If both the application and a propagator set the header, it has two dotted
 * orders. The second order is returned if it continues the first.
 */
function innermostOrder(value: string | undefined): string | undefined {
  const [order, inner, ...more] = value?.split(',').map((part) => part.trim()) ?? [];
  if (inner === undefined) return order;
  return more.length === 0 && inner.startsWith(`${order}.`) ? inner : undefined;
}

/**
 * Returns a copy of `headers` with two headers that propagate a run to another process, worker or message. `run`
 * defaults to the current run. The `runspan-trace` header contains the run ids. The W3C `baggage` header keeps its
 * existing members and adds the run's project, tags, metadata and sampling decision, and the ids of the nearest span.
 *
 * Adds no header if there is no run, tracing is off, or the dotted order is longer than 8,192 characters. Run fields
 * and metadata entries are omitted if they would make the baggage longer than 8,192 bytes.
 */
export function toHeaders(run?: Run, headers?: HeadersLike): Record<string, string> {
  const result: Record<string, string> = guard('toHeaders', () => plainHeaders(headers)) ?? {};
  guard('toHeaders', () => {
    const context = contextToSend(run);
    const order = orderToSend('toHeaders', context, ORDER_MAX);
    if (context === undefined || order === undefined) return;
    const key = headerKey(result, 'baggage') ?? 'baggage';
    const members = parseBaggage(result[key] ?? '');
    const baggage = baggageOf(withAddedFields(context), members, enclosingSpanIds(context));
    result[headerKey(result, 'runspan-trace') ?? 'runspan-trace'] = order;
    if (baggage !== '') result[key] = baggage;
  });
  return result;
}

/**
 * Maximum length of the `dotted_order` in requests of instrumentations, in characters. Servers accept only about 16 KiB
 * of headers in total.
 */
const REQUEST_ORDER_MAX = 4_096;

/** The headers that a request gets without the application's help. */
export interface RequestHeaders {
  readonly 'runspan-trace': string;
  readonly traceparent: string;
  /** Only if the runs of the trace are held. */
  readonly baggage?: string;
}

/**
 * Returns the headers for a request in `context`. They contain no project, tags or metadata. If the trace is left out
 * or held, the sampled flag of `traceparent` is 0. If the run is a recorded span, `traceparent` contains its ids.
 */
export function requestHeaders(context: RunContext): RequestHeaders | undefined {
  const order = orderToSend('propagation', context, REQUEST_ORDER_MAX);
  if (order === undefined) return undefined;
  const ids = (parseDottedOrder(order) ?? []).map(({ id }) => hexOf(id));
  // `fromHeaders` reads the flag 0 only beside the trace id of the runs.
  const heldRate = heldRateOf(context);
  const isSent = context.sampled && heldRate === undefined;
  const { traceId = (isSent && otelTraceIdOf(context)) || ids.at(0), spanId = ids.at(-1)?.slice(16) } =
    (isSent && spanOf(context)) || {};
  const traceparent = `00-${traceId}-${spanId}-0${isSent ? 1 : 0}`;
  const headers = { 'runspan-trace': order, traceparent };
  return heldRate === undefined ? headers : { ...headers, baggage: `runspan-sampled=false,runspan-held=${heldRate}` };
}

/**
 * Returns the headers to add to a request that has headers with `names`. In an incoming request without a recorded call,
 * the run of the incoming request starts, so that the runs of the called program have a parent.
 */
export function headersToAdd(
  context: RunContext | undefined,
  sink: RunSink,
  names: ReadonlySet<string>,
): [string, string][] {
  if (names.has('runspan-trace')) return [];
  const { parent } = placement({ exporter: sink }, context);
  const headers = parent && requestHeaders(parent);
  // Only our own `traceparent` can tell the other program that the trace is left out.
  if (headers === undefined || (headers.traceparent.endsWith('0') && names.has('traceparent'))) return [];
  return Object.entries(headers).filter(([name]) => !names.has(name));
}

export function orderToSend(place: string, context: RunContext | undefined, charactersMax: number): string | undefined {
  // A trace that is off, or that OpenTelemetry has left out, may have no run. The ids of a new run carry the decision.
  const isLeftOut = context?.sampled === false && context.exporter !== noopSink;
  const startUs = clock.nowUs();
  const order = context?.dottedOrder ?? (isLeftOut ? dottedOrder(undefined, startUs, newRunId(startUs)) : undefined);
  if (order === undefined || order.length <= charactersMax) return order;
  diagnostics.warnOnce(place, `${place}: a run is nested too deeply for a header; no header is added`);
  return undefined;
}

function contextToSend(run: Run | undefined): RunContext | undefined {
  if (run === undefined) return currentContext();
  if (run instanceof Run) return run.sink === undefined && currentSink() === undefined ? undefined : run.context;
  diagnostics.warnOnce('toHeaders.run', 'toHeaders(run): expected `run` to be a Run; no header is added.');
  return undefined;
}

/** Returns a context whose tags and metadata include the fields from `withContext`. Leaves out hidden metadata. */
export function withAddedFields(context: RunContext): RunContext {
  const sink = sinkOf(context);
  const shown = context.added === undefined ? context : { ...context, ...inheritedFrom(context, sink) };
  return sink?.capture.hidesMetadata === true ? { ...shown, metadata: undefined } : shown;
}

/**
 * Returns the baggage header for a run. Keeps the members from other libraries. Omits run fields that would exceed the
 * size limit. `spanIds` contains the ids of the nearest span, for headers without a `traceparent`.
 */
export function baggageOf(context: RunContext, given: readonly BaggageMember[], spanIds?: RunOwner['spanIds']): string {
  const texts = given.filter(({ key }) => !key.startsWith('runspan-')).map(({ text }) => text);
  // The byte count includes a comma after each member. The last member has no comma, so one byte is added.
  let bytesLeft = BAGGAGE_BYTES_MAX + 1;
  for (const text of texts) bytesLeft -= text.length + 1;
  const add = (key: string, value: string): void => {
    const { text } = baggageMember(`runspan-${key}`, value);
    if (text.length + 1 > bytesLeft) return;
    bytesLeft -= text.length + 1;
    texts.push(text);
  };
  const { sampled, project } = context;
  const heldRate = heldRateOf(context);
  if (!sampled || heldRate !== undefined) add('sampled', 'false');
  if (heldRate !== undefined) add('held', String(heldRate));
  if (spanIds !== undefined) add('otel', `00-${spanIds.traceId}-${spanIds.spanId}-01`);
  if (project !== undefined) add(typeof project === 'string' ? 'project' : 'project-id', projectText(project));
  if (context.tags !== undefined) add('tags', JSON.stringify(context.tags));
  const metadata = context.metadata && fittingJson(context.metadata, bytesLeft - 1);
  if (metadata !== undefined && metadata !== '{}') add('metadata', metadata);
  return texts.join(',');
}

/** Metadata keys that are encoded first, so that large entries do not displace them. */
const FIRST_KEYS: readonly string[] = ['thread_id', 'user_id'];

/** Encodes metadata as JSON. Omits entries that would make the baggage member exceed `bytesMax` bytes. */
function fittingJson(metadata: ReadonlyMap<string, string>, bytesMax: number): string {
  let left = bytesMax - baggageMember('runspan-metadata', '{}').text.length;
  const entries: string[] = [];
  for (const key of new Set([...FIRST_KEYS, ...metadata.keys()])) {
    const json = metadata.get(key);
    // The ids of a span have a member of their own.
    if (json === undefined || key === 'otel') continue;
    const entry = `${JSON.stringify(key)}:${json}`;
    const bytes = baggageMember('', entries.length === 0 ? entry : `,${entry}`).text.length - '='.length;
    if (bytes > left) continue;
    left -= bytes;
    entries.push(entry);
  }
  return `{${entries.join(',')}}`;
}

export function headerOf(headers: HeadersLike, name: string): string | undefined {
  const value: unknown =
    typeof headers.get === 'function' ? headers.get(name) : Reflect.get(headers, headerKey(headers, name) ?? name);
  if (types.isPromise(headers) || types.isPromise(value)) {
    diagnostics.warnOnce(
      'fromHeaders promise',
      'fromHeaders(headers): expected headers, got a promise; no run is read. Await the promise first.',
    );
  }
  ignoreRejection(value);
  return textOf(value);
}

/** Returns the original spelling of a header's key. `name` must be in lower case. */
export function headerKey(headers: object, name: string): string | undefined {
  return Object.keys(headers).find((given) => given.toLowerCase() === name);
}

function textOf(value: unknown): string | undefined {
  if (Array.isArray(value)) return value.filter((item) => typeof item === 'string').join(',');
  return typeof value === 'string' ? value : undefined;
}

function plainHeaders(headers: HeadersLike | undefined): Record<string, string> {
  const plain: Record<string, string> = {};
  if (headers === undefined || headers === null) return plain;
  const isIterable = typeof (headers as Partial<Iterable<unknown>>)[Symbol.iterator] === 'function';
  const entries = isIterable ? (headers as unknown as Iterable<[string, unknown]>) : Object.entries(headers);
  for (const [name, value] of entries) {
    const text = typeof value === 'number' ? String(value) : textOf(value);
    if (text !== undefined) plain[name] = text;
  }
  return plain;
}

/**
 * Maximum bytes and members of a baggage header. Proxies must forward baggage within these limits (W3C Baggage, 3.3.2).
 */
const BAGGAGE_BYTES_MAX = 8_192;
const MEMBERS_MAX = 64;

/** A member of a baggage header. `text` has the form `key=value;property`, with an encoded value. */
export interface BaggageMember {
  readonly key: string;
  readonly text: string;
}

/**
 * Parses a W3C `baggage` header without decoding values. Ignores invalid members and members beyond the limits of the
 * specification (https://www.w3.org/TR/baggage/).
 */
export function parseBaggage(header: string): BaggageMember[] {
  const members: BaggageMember[] = [];
  // A long header is cut at a comma, because a cut inside a member would change the member's value.
  const end = header.length <= BAGGAGE_BYTES_MAX ? header.length : header.lastIndexOf(',', BAGGAGE_BYTES_MAX);
  for (const part of header.slice(0, Math.max(0, end)).split(',', MEMBERS_MAX)) {
    const text = part.trim();
    const equals = text.indexOf('=');
    if (equals > 0) members.push({ key: text.slice(0, equals).trimEnd(), text });
  }
  return members;
}

export function baggageValue(members: readonly BaggageMember[], key: string): string | undefined {
  const text = members.find((member) => member.key === key)?.text;
  if (text === undefined) return undefined;
  const [value = ''] = text.slice(text.indexOf('=') + 1).split(';', 1);
  return ignoreErrors(() => decodeURIComponent(value.trim()));
}

/** Encodes a baggage member. Replaces lone surrogates with U+FFFD, because `encodeURIComponent` throws for them. */
export function baggageMember(key: string, value: string): BaggageMember {
  return { key, text: `${key}=${encodeURIComponent(value.toWellFormed())}` };
}

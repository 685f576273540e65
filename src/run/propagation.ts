import { types } from 'node:util';
import type { Check } from '../base/checked-options.ts';
import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { ignoreRejection } from '../base/rejection.ts';
import { BAGGAGE_BYTES_MAX, type BaggageMember, baggageMember, baggageValue, parseBaggage } from './baggage.ts';
import { currentContext, type RunContext, remoteContext } from './context.ts';
import { parseDottedOrder } from './dotted-order.ts';
import { type Project, projectText } from './encoded-run.ts';
import { withMetadata } from './metadata.ts';
import { Run } from './run.ts';
import { usableOptions } from './run-options.ts';
import type { RunSink } from './sink.ts';
import { withTags } from './tags.ts';

/** Characters of a dotted order that travel: some 138 runs below each other. */
const ORDER_MAX = 8_192;

/** What is taken from others of text and of lists: more is no name, tag or list of tags. */
const TEXT_MAX = 1_000;
const TAGS_MAX = 100;

/** The two headers that are read, the first that holds wins, and what the keys of their baggage begin with. */
const DIALECTS = [
  ['runspan-trace', 'runspan'],
  ['langsmith-trace', 'langsmith'],
] as const;

/** Headers as servers and clients have them: `Headers`, those of `node:http`, or a plain object. Case does not matter. */
export type HeadersLike =
  | { get(name: string): string | null | undefined }
  | Readonly<Record<string, string | readonly string[] | number | undefined>>;

/** Optional fields that request headers may carry in addition to the ids. */
export type HeaderField = 'project' | 'tags' | 'metadata';

/** Options of `fromHeaders`. */
export interface FromHeadersOptions {
  /**
   * The fields that nested runs inherit from the headers. List fields only if you trust all callers: anyone can send such
   * headers and thereby choose the project in which your runs are recorded. @default []
   */
  accept?: readonly HeaderField[];
}

const HEADER_FIELDS: readonly unknown[] = ['project', 'tags', 'metadata'] satisfies HeaderField[];

/** Validates the `accept` option of every function that reads headers. */
export const acceptCheck: Check = [
  "a list of 'project', 'tags' and 'metadata'",
  (value) => Array.isArray(value) && value.every((field) => HEADER_FIELDS.includes(field)),
];

/** A run of another process, worker or message, as its headers tell of it. Pass it to `withRun`. */
export class RemoteRun {
  readonly id: string;
  readonly traceId: string;
  readonly dottedOrder: string;
  readonly #project: Project | undefined;
  readonly #tags: readonly string[] | undefined;
  readonly #metadata: Readonly<Record<string, unknown>> | undefined;
  readonly #sampled: boolean;

  /** @internal */
  constructor(
    order: string,
    ids: readonly [first: string, last: string],
    prefix: string,
    baggage: BaggageMember[],
    accept: readonly HeaderField[],
  ) {
    [this.traceId, this.id] = ids;
    this.dottedOrder = order;
    const accepted = (field: HeaderField) =>
      accept.includes(field) ? baggageValue(baggage, `${prefix}-${field}`) : undefined;
    const id = accept.includes('project') ? baggageValue(baggage, `${prefix}-project-id`) : undefined;
    const named = (id || accepted('project'))?.slice(0, TEXT_MAX) || undefined;
    this.#project = id && named ? { id: named } : named;
    this.#tags = tagsOf(accepted('tags'), prefix);
    this.#metadata = metadataOf(accepted('metadata'));
    this.#sampled = baggageValue(baggage, `${prefix}-sampled`) !== 'false';
  }

  /** @internal What runs below it are told, which go to this sink unless they name another. */
  contextFor(sink: RunSink): RunContext {
    const { payload } = sink.capture;
    const told = {
      project: this.#project,
      tags: withTags(undefined, this.#tags, payload),
      metadata: this.#metadata && withMetadata(undefined, this.#metadata, payload),
      sampled: this.#sampled,
    };
    return remoteContext(this, told, sink);
  }
}

/**
 * Returns the caller's run described by the headers. With `withRun(fromHeaders(request.headers), handler)`, runs in the handler
 * become its children, in the same trace. The ids are read from `runspan-trace`, or else from `langsmith-trace`, and the
 * sampling decision from W3C `baggage`. The project, tags and metadata in the baggage are ignored unless listed in `accept`.
 * Headers never set the endpoint or the key, and invalid headers are ignored. Returns undefined if the headers describe no
 * run. Never throws.
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
      return new RemoteRun(
        order,
        [first.id, last.id],
        prefix,
        parseBaggage(headerOf(headers, 'baggage') ?? ''),
        accept,
      );
    }
  } catch {
    // Headers that cannot be read tell of nothing.
  }
  return undefined;
}

/**
 * Headers that tell another process, worker or message of a run, the current one unless another is given: `runspan-trace`
 * and W3C `baggage` with project, tags, metadata and whether the trace is sampled. `headers` are those that the request has
 * already; they come back with ours, their own baggage kept. Nothing is added without a run or with tracing off, or when
 * the run is so deep that its order has over 8 192 characters. Metadata that no longer fits into the 8 192 bytes of
 * baggage is left out.
 */
export function toHeaders(run?: Run, headers?: HeadersLike): Record<string, string> {
  const result: Record<string, string> = guard('toHeaders', () => plainHeaders(headers)) ?? {};
  guard('toHeaders', () => {
    const context = contextToSend(run);
    const order = orderToSend('toHeaders', context, ORDER_MAX);
    if (context === undefined || order === undefined) return;
    const key = keyOf(result, 'baggage') ?? 'baggage';
    const baggage = baggageOf(context, parseBaggage(result[key] ?? ''));
    result[keyOf(result, 'runspan-trace') ?? 'runspan-trace'] = order;
    if (baggage !== '') result[key] = baggage;
  });
  return result;
}

/** The order of a run, for a header of as many characters; undefined, and told once, where it does not fit. */
export function orderToSend(place: string, context: RunContext | undefined, charactersMax: number): string | undefined {
  const order = context?.dottedOrder;
  if (order === undefined || order.length <= charactersMax) return order;
  diagnostics.warnOnce(place, `${place}: a run is too deep in its trace to be told in a header; none is added`);
  return undefined;
}

function contextToSend(run: Run | undefined): RunContext | undefined {
  if (run === undefined) return currentContext();
  if (run instanceof Run) return run.sink === undefined ? undefined : run.context;
  diagnostics.warnOnce('toHeaders.run', 'toHeaders(run): expected `run` to be a Run; nothing is added.');
  return undefined;
}

/** What a baggage header tells of a run beside its place. */
export type ToldInBaggage = Pick<RunContext, 'sampled' | 'project' | 'tags' | 'metadata'>;

/** The members that are there, without ours, and what is told of the run as far as it fits. */
export function baggageOf(context: ToldInBaggage, present: readonly BaggageMember[]): string {
  const texts = present.filter(({ key }) => !key.startsWith('runspan-')).map(({ text }) => text);
  // Each member with the comma behind it, which the last does not have.
  let bytesLeft = BAGGAGE_BYTES_MAX + 1;
  for (const text of texts) bytesLeft -= text.length + 1;
  const add = (key: string, value: string): void => {
    const { text } = baggageMember(`runspan-${key}`, value);
    if (text.length + 1 > bytesLeft) return;
    bytesLeft -= text.length + 1;
    texts.push(text);
  };
  if (!context.sampled) add('sampled', 'false');
  const { project } = context;
  if (project !== undefined) add(typeof project === 'string' ? 'project' : 'project-id', projectText(project));
  if (context.tags !== undefined) add('tags', JSON.stringify(context.tags));
  const metadata = context.metadata && fittingJson(context.metadata, bytesLeft - 1);
  if (metadata !== undefined && metadata !== '{}') add('metadata', metadata);
  return texts.join(',');
}

/** JSON text of as much metadata as fits when it is encoded. */
function fittingJson(metadata: ReadonlyMap<string, string>, bytesMax: number): string {
  let left = bytesMax - baggageMember('runspan-metadata', '{}').text.length;
  const entries: string[] = [];
  for (const [key, json] of metadata) {
    const entry = `${JSON.stringify(key)}:${json}`;
    const bytes = baggageMember('', entries.length === 0 ? entry : `,${entry}`).text.length - '='.length;
    if (bytes > left) continue;
    left -= bytes;
    entries.push(entry);
  }
  return `{${entries.join(',')}}`;
}

/**
 * A request that was given the header by hand and once more by a propagator has it twice: the second goes on from the first.
 * Any other list is no place in a trace.
 */
function innermostOrder(value: string | undefined): string | undefined {
  const [order, inner, ...more] = value?.split(',').map((part) => part.trim()) ?? [];
  if (inner === undefined) return order;
  return more.length === 0 && inner.startsWith(`${order}.`) ? inner : undefined;
}

function tagsOf(text: string | undefined, prefix: string): readonly string[] | undefined {
  if (text === undefined) return undefined;
  const tags: unknown = prefix === 'runspan' ? jsonOf(text) : text.split(',');
  if (!Array.isArray(tags)) return undefined;
  const taken = tags.filter((tag): tag is string => typeof tag === 'string' && tag !== '' && tag.length <= TEXT_MAX);
  return taken.length === 0 ? undefined : taken.slice(0, TAGS_MAX);
}

function metadataOf(text: string | undefined): Readonly<Record<string, unknown>> | undefined {
  const metadata = text === undefined ? undefined : jsonOf(text);
  const isObject = typeof metadata === 'object' && metadata !== null && !Array.isArray(metadata);
  return isObject ? (metadata as Record<string, unknown>) : undefined;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The value of a header in whatever case; undefined where there is none, or it is no text. */
export function headerOf(headers: HeadersLike, name: string): string | undefined {
  // What the host has put on all objects is no method of headers.
  if (typeof headers.get === 'function' && headers.get !== (Object.prototype as typeof headers).get) {
    const value: unknown = headers.get(name);
    if (types.isPromise(value)) refusePromise();
    ignoreRejection(value);
    return textOf(value);
  }
  if (types.isPromise(headers)) refusePromise();
  const key = keyOf(headers, name);
  return key === undefined ? undefined : textOf((headers as Record<string, unknown>)[key]);
}

function refusePromise(): void {
  diagnostics.warnOnce(
    'fromHeaders promise',
    'fromHeaders(headers): expected headers, got a promise; await it. No run is read of it.',
  );
}

/** How the header is spelt there. */
export function keyOf(headers: object, name: string): string | undefined {
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

/** What one source knows about a call to a model or a tool. A source is an instrumentation scope, a wrapper or a recorder. */
export interface Call {
  /** The run type. Only records of the same type can be of the same call. */
  readonly type: string;
  /** The name of a tool, or the model that a wrapper calls. Only tools and nested wrappers are compared by name. */
  readonly name: string;
  /**
   * Identifies the source of the record: a name, or the traced method in this process. Undefined if the application
   * itself has recorded the call, for example with `traceable`.
   */
  readonly source: string | object | undefined;
}

/** A run in a trace, with the evidence that decides whether it records the same call as another run. */
export interface CallRecord extends Call {
  readonly id: string;
  readonly parentId: string | undefined;
  readonly source: string | undefined;
  /** The id that the service has given to its response, for example `chatcmpl-…`, `msg_…` or `resp_…`. */
  readonly responseId: string | undefined;
  /** The fingerprint of the request, from `requestKey`. */
  readonly request: string | undefined;
  readonly startUs: number;
  /** Undefined if the run has not ended. */
  readonly endUs: number | undefined;
}

/** Run types of model calls. */
export const MODEL_TYPES: readonly string[] = ['llm', 'embedding'];

/** Run types whose runs record one call. */
export const CALL_TYPES: readonly string[] = [...MODEL_TYPES, 'retriever', 'tool'];

/** Maximum number of calls with the same request that are compared, because all pairs are compared. */
const GROUP_MAX = 200;
/** Maximum number of further records of a call, one within the other. */
const RECORDS_MAX = 16;
/** Maximum number of levels between two records of a call. */
const LEVELS_MAX = 64;

/** The metadata key of a response's id. */
export const RESPONSE_ID = 'response_id';

/** The metadata key of the sources that have recorded a run. The first source has started the run. */
export const SOURCES = 'recorded_by';

/** Returns whether a record that began inside an open record is of the same call. */
export function isSameCall(outer: Call | undefined, inner: Call | undefined): boolean {
  if (outer === undefined || outer.type !== inner?.type || outer.source === inner.source) return false;
  const areWrappers = typeof outer.source === 'object' && typeof inner.source === 'object';
  return (outer.type !== 'tool' && !areWrappers) || outer.name === inner.name;
}

/**
 * Maps each run that repeats a call to the run that records the same call further out. The runs must be all runs of one
 * trace. The evidence, strongest first: equal response ids; the inner run is below the outer run; or equal requests,
 * where the outer run contains the time of the inner run and no other pair is possible. Equal models and overlapping
 * times are no evidence. In doubt, two runs record two calls, because a call that counts twice is easier to notice than
 * a call that is missing.
 */
export function sameCalls(runs: readonly CallRecord[]): ReadonlyMap<string, string> {
  const outers = new Map<string, string>();
  const calls = runs.filter(({ type }) => CALL_TYPES.includes(type));
  if (new Set(calls.map(({ source }) => source)).size < 2) return outers;
  // The result must not depend on the order of arrival.
  calls.sort((a, b) => a.startUs - b.startUs || (a.id < b.id ? -1 : 1));
  const add = (inner: CallRecord, outer: CallRecord | undefined): void => {
    if (outer === undefined || outers.has(inner.id)) return;
    const chain = chainOf(outer.id, outers);
    if (chain.length <= RECORDS_MAX && !chain.includes(inner.id)) outers.set(inner.id, outer.id);
  };
  const byId = new Map(runs.map((run) => [run.id, run]));
  for (const group of groupsBy(calls, ({ responseId }) => responseId)) {
    const isOneEach = new Set(group.map(({ source }) => source)).size === group.length;
    const outermost = group.find((call) => !group.some((other) => isBelow(call, other, byId))) ?? group[0];
    for (const call of group) add(call, isOneEach ? outermost : containing(call, group, byId));
  }
  for (const call of calls) add(call, enclosing(call, byId));
  for (const group of groupsBy(calls, ({ request }) => request)) {
    for (const call of group) if (!outers.has(call.id)) add(call, containing(call, group, byId));
  }
  return outers;
}

/** Returns whether a run's usage is part of another run's usage. `outers` is the result of `sameCalls`. */
export function isRepeated(
  id: string,
  outers: ReadonlyMap<string, string>,
  hasUsage: (id: string) => boolean,
): boolean {
  return chainOf(id, outers).slice(1).some(hasUsage);
}

/** Returns an id, its outer id, and so on. Stops after `RECORDS_MAX` outer ids, so that long chains cost little. */
function chainOf(id: string, outers: ReadonlyMap<string, string>): string[] {
  const chain: string[] = [];
  for (let at: string | undefined = id; at !== undefined && chain.length <= RECORDS_MAX; at = outers.get(at)) {
    chain.push(at);
  }
  return chain;
}

/** Groups calls of the same type by a key. Omits calls without a key, single calls, and groups above the limit. */
function groupsBy(calls: readonly CallRecord[], keyOf: (call: CallRecord) => string | undefined): CallRecord[][] {
  const groups = new Map<string, CallRecord[]>();
  for (const call of calls) {
    const key = keyOf(call);
    if (key === undefined) continue;
    const group = groups.get(`${call.type} ${key}`);
    if (group === undefined) groups.set(`${call.type} ${key}`, [call]);
    else group.push(call);
  }
  return [...groups.values()].filter(({ length }) => length > 1 && length <= GROUP_MAX);
}

/**
 * Returns the only call of another source that contains the time of a call, or the innermost if they are nested. Returns
 * undefined if there are several, or if a concurrent call of the same source has the same candidate. Calls one after the
 * other are attempts of one call.
 */
function containing(
  call: CallRecord,
  group: readonly CallRecord[],
  byId: ReadonlyMap<string, CallRecord>,
): CallRecord | undefined {
  const candidates = group.filter((other) => contains(other, call));
  if (candidates.length > RECORDS_MAX) return undefined;
  const [outer, ...others] = candidates.filter((one) => !candidates.some((other) => isBelow(other, one, byId)));
  if (outer === undefined || others.length > 0) return undefined;
  const rivals = group.filter((other) => other !== call && other.source === call.source && contains(outer, other));
  return rivals.some((rival) => overlaps(rival, call)) ? undefined : outer;
}

function contains(outer: CallRecord, inner: CallRecord): boolean {
  if (!isSameCall(outer, inner) || outer.startUs > inner.startUs || inner.endUs === undefined) return false;
  return outer.endUs === undefined || inner.endUs <= outer.endUs;
}

function overlaps(one: CallRecord, other: CallRecord): boolean {
  return (
    one.startUs <= (other.endUs ?? Number.POSITIVE_INFINITY) && other.startUs <= (one.endUs ?? Number.POSITIVE_INFINITY)
  );
}

/**
 * Returns the closest run above a call that records the same call. Functions of the application between the two runs end
 * the search, because they may make calls of their own.
 */
function enclosing(call: CallRecord, byId: ReadonlyMap<string, CallRecord>): CallRecord | undefined {
  for (const above of runsAbove(call, byId)) {
    if (isSameCall(above, call)) return above;
    if (CALL_TYPES.includes(above.type) ? above.type !== call.type : above.source === undefined) return undefined;
  }
  return undefined;
}

function isBelow(call: CallRecord, other: CallRecord, byId: ReadonlyMap<string, CallRecord>): boolean {
  for (const above of runsAbove(call, byId)) if (above === other) return true;
  return false;
}

function* runsAbove(call: CallRecord, byId: ReadonlyMap<string, CallRecord>): Generator<CallRecord> {
  const seen = new Set([call]);
  for (let at = byId.get(call.parentId ?? ''); at !== undefined && !seen.has(at); at = byId.get(at.parentId ?? '')) {
    if (seen.size > LEVELS_MAX) return;
    seen.add(at);
    yield at;
  }
}

/** Fields of a request that contain its texts, in the order in which they are compared. */
const TEXT_FIELDS: readonly string[] = [
  ...['system', 'instructions', 'prompt', 'messages', 'contents', 'input', 'inputs', 'value', 'values', 'query'],
  ...['documents', 'content', 'parts', 'text', 'toolResult'],
];

const DEPTH_MAX = 16;

/**
 * Returns a fingerprint of the texts in a request, which is the same in every format of a request. Roles, parameters,
 * media and calls of tools are not compared. Returns undefined if the request has no text.
 */
export function requestKey(inputs: unknown): string | undefined {
  const texts = requestTexts(inputs);
  return texts.length === 0 ? undefined : hashOf(texts.join('\0'));
}

/** Returns the texts in a request: the system prompt first, then the messages in their order. */
export function requestTexts(inputs: unknown): string[] {
  const texts: string[] = [];
  addTexts(texts, inputs, 0);
  return texts;
}

function addTexts(texts: string[], value: unknown, depth: number): void {
  if (typeof value === 'string') {
    if (value.trim() !== '') texts.push(value.trim());
  } else if (typeof value === 'object' && value !== null && depth < DEPTH_MAX) {
    const fields = value as Readonly<Record<string, unknown>>;
    const items = Array.isArray(value) ? value : TEXT_FIELDS.map((key) => fields[key]);
    for (const item of items) addTexts(texts, item, depth + 1);
  }
}

/** Returns a hash of 53 bits, after `cyrb53` by bryc (public domain). */
function hashOf(text: string): string {
  let [one, two] = [0xdeadbeef, 0x41c6ce57];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    one = Math.imul(one ^ code, 2654435761);
    two = Math.imul(two ^ code, 1597334677);
  }
  one = Math.imul(one ^ (one >>> 16), 2246822507) ^ Math.imul(two ^ (two >>> 13), 3266489909);
  two = Math.imul(two ^ (two >>> 16), 2246822507) ^ Math.imul(one ^ (one >>> 13), 3266489909);
  return (4294967296 * (2097151 & two) + (one >>> 0)).toString(36);
}

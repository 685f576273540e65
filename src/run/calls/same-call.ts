import type { Fields } from '../../payload/fields.ts';
import { argumentsKey, requestKey } from './request-key.ts';

export const MODEL_TYPES: readonly string[] = ['llm', 'embedding'];

export const CALL_TYPES: readonly string[] = [...MODEL_TYPES, 'retriever', 'tool'];

export function isCallType(runType: string | undefined): boolean {
  return runType !== undefined && CALL_TYPES.includes(runType);
}

/** Metadata keys: the id of a response, the id of a tool's call, the token counts, and the sources of a run. */
export const RESPONSE_ID = 'response_id';
export const TOOL_CALL_ID = 'tool_call_id';
export const USAGE = 'usage_metadata';
export const SOURCES = 'recorded_by';

/** The metadata key of a run's id that records the same call. */
export const SAME_CALL = 'same_call';

/** The metadata key of the usage of a run whose call another run counts. */
export const SAME_CALL_USAGE = 'same_call_usage';

/** Maximum number of records with the same request that are compared. Of more, the latest. */
const GROUP_MAX = 200;
/** Maximum number of ended records that are kept, because a record of the same call may end later. */
const ENDED_MAX = 10_000;

/** What is known of a call when its record starts. */
export type CallFacts = Pick<CallRecord, 'id' | 'traceId' | 'parentId' | 'type' | 'source' | 'name' | 'model'>;

/** A record of a call, open or lately ended: the evidence that another record is or is not of the same call. */
export class CallRecord {
  readonly id: string;
  readonly traceId: string;
  readonly parentId: string | undefined;
  /** The run type. Only records of the same type can be of the same call. */
  readonly type: string;
  /**
   * An instrumentation scope, the name of an integration, or a wrapped method. Records of one source are never of the same
   * call. Undefined if the application itself has recorded the call, for example with `traceable`.
   */
  readonly source: string | object | undefined;
  /** The name of the tool. Only tools are compared by name. */
  name: string;
  /** The requested model. Undefined if it is unknown. */
  model: string | undefined;
  /** The fingerprint of the request or the arguments. Undefined if it is unknown, or not needed yet. */
  key: string | undefined;
  /** The id that the service gave to its response, or the id of a tool's call. */
  responseId: string | undefined;
  hasFailed = false;
  /** Whether the record or one that names it has usage. */
  hasUsage = false;
  /** The number of the start among the starts and ends of all records. */
  startSequence = 0;
  /** Infinite while the record is open. */
  endSequence: number = Number.POSITIVE_INFINITY;
  /** The record of the same call that ended before. May be set before the end, if it is known. */
  same: CallRecord | undefined;
  /** The last known `first`, because a call may have many records. */
  #first: CallRecord | undefined;

  constructor({ id, traceId, parentId, type, source, name, model }: CallFacts) {
    this.id = id;
    this.traceId = traceId;
    this.parentId = parentId;
    this.type = type;
    this.source = source;
    this.name = name;
    this.model = model;
  }

  /** The record of the call that names no other. */
  get first(): CallRecord {
    let at = this.#first ?? this;
    while (at.same !== undefined) at = at.#first ?? at.same;
    if (at !== this) this.#first = at;
    return at;
  }
}

/** Returns the fingerprint of a call, by which records in other formats are found. */
export function callKey(type: string, inputs: unknown): string | undefined {
  return type === 'tool' ? argumentsKey(inputs) : requestKey(inputs);
}

/** Returns the id in the metadata of a call by which records of other sources are found. */
export function responseIdIn(type: string, metadata: object): string | undefined {
  const id = (metadata as Fields)[type === 'tool' ? TOOL_CALL_ID : RESPONSE_ID];
  return typeof id === 'string' && id !== '' && !INVENTED.test(id) ? id : undefined;
}

/** Matches ids that the AI SDK invents for responses without an id. */
const INVENTED = /^(aitxt|aiobj)-/;

type Relation = (one: CallRecord, other: CallRecord) => boolean;

/**
 * Finds the records of the same call. Two records of different sources are of one call if one started while the other was
 * open, and they have equal response ids. If one has no id, they must have equal requests and models that do not contradict,
 * one must be below the other or both below the same run, and no other record of either source may fit. In doubt, two
 * records are two calls, because a call that counts twice is easier to notice than a call that is missing.
 */
export class CallTable {
  readonly #isBelow: Relation;
  readonly #mayFollow: Relation;
  readonly #byEvidence = new Map<string, Set<CallRecord>>();
  readonly #ended = new Set<CallRecord>();

  /**
   * `isBelow` tells whether a record is below another one in their trace, and `mayFollow` whether one of two that seem to
   * overlap may have started after the other one ended, because their clocks are not exact.
   */
  constructor(isBelow: Relation, mayFollow: Relation = () => false) {
    this.#isBelow = isBelow;
    this.#mayFollow = mayFollow;
  }

  /** Adds a record. If its key or id becomes known later, it must be added again. */
  add(call: CallRecord): void {
    for (const evidence of evidenceOf(call)) {
      const group = this.#byEvidence.get(evidence) ?? new Set();
      this.#byEvidence.set(evidence, group.add(call));
      if (group.size > GROUP_MAX) group.delete(oldestOf(group));
    }
  }

  /** Keeps a record that ended before, because a record of the same call may end later. */
  keep(call: CallRecord): void {
    this.add(call);
    this.#ended.add(call);
    if (this.#ended.size > ENDED_MAX) this.remove(this.#ended.values().next().value as CallRecord);
  }

  /** Sets `same` of a record that has just ended, and keeps the record. */
  end(call: CallRecord): void {
    this.keep(call);
    call.same ??= this.#withEqualId(call) ?? this.#withEqualKey(call);
    shareFacts(call);
  }

  remove(call: CallRecord): void {
    this.#ended.delete(call);
    for (const evidence of evidenceOf(call)) {
      const group = this.#byEvidence.get(evidence);
      group?.delete(call);
      if (group?.size === 0) this.#byEvidence.delete(evidence);
    }
  }

  /**
   * Returns a record of another source with the same id. Prefers an equal request, then a related record, then the one that
   * ended last. Some servers use an id again, so models must not contradict, nor requests if neither is below the other.
   */
  #withEqualId(call: CallRecord): CallRecord | undefined {
    const others = this.#groupOf(idEvidence(call)).filter((other) => {
      if (other.source === call.source || !areOverlapping(other, call)) return false;
      return (
        mayBeOneModel(other.model, call.model) && (this.#areNested(other, call) || mayBeEqual(other.key, call.key))
      );
    });
    const equal = others.filter(({ key }) => key !== undefined && key === call.key);
    const related = (equal.length > 0 ? equal : others).filter((other) => this.#areRelated(other, call));
    return latestOf(call, related) ?? latestOf(call, equal) ?? latestOf(call, others);
  }

  /** Returns the record of another source that fits and ended last, if no other record fits either of the two. */
  #withEqualKey(call: CallRecord): CallRecord | undefined {
    const members = this.#groupOf(keyEvidence(call));
    const fitting = members.filter((other) => other.source !== call.source && this.#fits(call, other));
    const certain = fitting.filter((other) => this.#areNested(call, other) || !this.#mayFollow(call, other));
    const alone = certain.filter(
      (found) =>
        !fitting.some((other) => this.#isRival(other, found)) &&
        !members.some((other) => this.#isRival(other, call) && this.#fits(found, other)),
    );
    return latestOf(call, alone);
  }

  /** Whether a record may be meant instead of one that fits. A failed one is not if the other has succeeded. */
  #isRival(one: CallRecord, found: CallRecord): boolean {
    if (one === found || (one.hasFailed && !found.hasFailed)) return false;
    return one.source === found.source || (areWrapped(one, found) && !this.#areNested(one, found));
  }

  #groupOf(evidence: string | undefined): CallRecord[] {
    const group = this.#byEvidence.get(evidence ?? '');
    return group === undefined || group.size === 1 ? [] : [...group];
  }

  #fits(one: CallRecord, other: CallRecord): boolean {
    if (!areOverlapping(one, other)) return false;
    if (!mayBeEqual(one.responseId, other.responseId)) return false;
    if (one.type === 'tool' ? one.name !== other.name : !mayBeOneModel(one.model, other.model)) return false;
    return this.#areRelated(one, other);
  }

  /** Whether one is below the other, or both are below the same run. Wrapped methods beside each other record two requests. */
  #areRelated(one: CallRecord, other: CallRecord): boolean {
    const areSiblings = one.parentId !== undefined && one.parentId === other.parentId;
    return (areSiblings && !areWrapped(one, other)) || this.#areNested(one, other);
  }

  #areNested(one: CallRecord, other: CallRecord): boolean {
    return this.#isBelow(one, other) || this.#isBelow(other, one);
  }
}

/** Whether both are wrapped methods, for example of two clients. */
function areWrapped(one: CallRecord, other: CallRecord): boolean {
  return typeof one.source === 'object' && typeof other.source === 'object';
}

function mayBeEqual(one: string | undefined, other: string | undefined): boolean {
  return one === undefined || other === undefined || one === other;
}

function evidenceOf(call: CallRecord): string[] {
  return [idEvidence(call), keyEvidence(call)].filter((evidence) => evidence !== undefined);
}

function idEvidence({ traceId, type, responseId }: CallRecord): string | undefined {
  return responseId && `${traceId} ${type} id ${responseId}`;
}

function keyEvidence({ traceId, type, key }: CallRecord): string | undefined {
  return key && `${traceId} ${type} key ${key}`;
}

/** Returns the record that has ended first, or else that has started first. */
function oldestOf(group: ReadonlySet<CallRecord>): CallRecord {
  for (const one of group) if (one.endSequence !== Number.POSITIVE_INFINITY) return one;
  return group.values().next().value as CallRecord;
}

/**
 * Returns the other record that ended last. Each record names the one that ended before it, so only the usage of the first
 * counts. Omits records that name the call already.
 */
function latestOf(call: CallRecord, others: readonly CallRecord[]): CallRecord | undefined {
  const ended = others
    .filter(({ endSequence }) => endSequence < call.endSequence)
    .sort((a, b) => b.endSequence - a.endSequence);
  return ended.find((other) => other.first !== call);
}

function areOverlapping(one: CallRecord, other: CallRecord): boolean {
  return one.startSequence <= other.endSequence && other.startSequence <= one.endSequence;
}

/** What one record of a call tells of it holds for the others, so that no record that contradicts one names another. */
function shareFacts(call: CallRecord): void {
  for (let at = call; at.same !== undefined; at = at.same) {
    const { same } = at;
    const { responseId = at.responseId, model = at.model } = same;
    at.responseId ??= responseId;
    at.model ??= model;
    if (same.responseId === responseId && same.model === model) return;
    same.responseId = responseId;
    same.model = model;
  }
}

/** Matches what a service adds to the name of a requested model: a date, a build or a version, as in `-20240229-v1:0`. */
const VERSION = /^(-(latest|v\d+|\d{3,8}|\d{4}-\d\d-\d\d)|@(latest|\d{3,8})|:(latest|\d+))+$/;

/** Whether two names may be of one model: one may lack the provider before the last `/`, or the version. */
export function mayBeOneModel(one: string | undefined, other: string | undefined): boolean {
  if (one === undefined || other === undefined) return true;
  const names = [one, other].map((model) => model.slice(model.lastIndexOf('/') + 1).toLowerCase());
  const [short = '', long = ''] = names.sort((a, b) => a.length - b.length);
  return long.startsWith(short) && (long === short || VERSION.test(long.slice(short.length)));
}

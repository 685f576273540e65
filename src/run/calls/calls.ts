import { guard } from '../../base/guard.ts';
import { shared } from '../../base/shared.ts';
import { makeSlot, type Slot } from '../../base/slot.ts';
import { exactJson, type Fields, fieldsOf, isFields, parsedJson, textOf, without } from '../../payload/fields.ts';
import { type EncodedRun, encodeLazy } from '../encoded-run.ts';
import type { RunSink } from '../sink.ts';
import { CallRecord, CallTable, callKey, responseIdIn, SAME_CALL, SAME_CALL_USAGE, USAGE } from './same-call.ts';

export interface CallStart {
  /** Identifies the source, if the option `source` of the run does not. */
  readonly source?: CallRecord['source'];
  /**
   * Returns the request or the arguments as the source gave them, before hooks, masks and limits. Undefined for a run of the
   * application itself, of which the recorded inputs are compared: its arguments may contain what must not stay in memory.
   */
  readonly inputs?: () => unknown;
  /** Whether the record follows the code that sends the request. A request with an equal key inside is its transport. */
  readonly isSender?: boolean;
}

export class RecordedCall extends CallRecord {
  readonly dottedOrder: string;
  readonly isSender: boolean;
  /** Whether only the end of the run has told that it records a call. */
  isLate = false;
  /** Whether the run was one of those that may turn out to record a call. */
  isUndecided = false;
  #inputs: (() => unknown) | undefined;

  constructor(
    run: Pick<EncodedRun, 'id' | 'traceId' | 'dottedOrder' | 'parentRunId' | 'name' | 'inputs'> &
      Partial<Pick<EncodedRun, 'lazy'>>,
    type: string,
    start: CallStart,
  ) {
    const { source, inputs, isSender = false } = start;
    const { id, traceId, parentRunId: parentId, name, inputs: json } = run;
    const lazy = run.lazy?.inputs;
    super({ id, traceId, parentId, type, source, name, model: undefined });
    this.dottedOrder = run.dottedOrder;
    this.isSender = isSender;
    const isKnown = json !== undefined || lazy !== undefined;
    this.#inputs = inputs ?? (isKnown ? () => parsedJson(json ?? lazy?.json) : undefined);
  }

  /** Takes the evidence in metadata that is being added to the run. */
  read(metadata: object): void {
    this.responseId ??= responseIdIn(this.type, metadata);
    this.model ??= textOf((metadata as Fields).ls_model_name);
  }

  /** Reads the request, if that is still possible, and returns its fingerprint. */
  readKey(): string | undefined {
    const inputs = this.#inputs;
    if (inputs !== undefined) this.key ??= guard('comparing calls', () => callKey(this.type, inputs()));
    if (this.key !== undefined) this.forgetInputs();
    return this.key;
  }

  forgetInputs(): void {
    this.#inputs = undefined;
  }
}

/** Maximum number of open records. Above this number, the oldest is forgotten, because it may never end. */
const OPEN_MAX = 10_000;

/** Maximum number of open records whose requests stay in memory. Of others, the fingerprints are calculated. */
const UNREAD_MAX = 100;

/** Number of ended records that a source is compared with that turns out to record calls. */
const LATEST_MAX = 100;

/** The records of calls of one run type that are sent to one sink. */
class CallsOfType {
  readonly #open = new Set<RecordedCall>();
  /** The open records whose requests have not been read, oldest first. */
  readonly #unread = new Set<RecordedCall>();
  /** The records with an id that ended last while there was no table. */
  #latest: RecordedCall[] = [];
  /** The source of all records, as long as there is no table. */
  #source: CallRecord['source'];
  /** Compares records. Undefined while one source records all calls, because fingerprints take time. */
  #table: CallTable | undefined;

  start(call: RecordedCall, isBesideOthers: boolean): void {
    this.#tableFor(call, isBesideOthers)?.add(call);
    this.#open.add(call);
    this.#unread.add(call);
    if (this.#open.size > OPEN_MAX) this.leave(this.#open.values().next().value as RecordedCall);
    if (this.#unread.size <= UNREAD_MAX) return;
    const oldest = this.#unread.values().next().value as RecordedCall;
    this.#unread.delete(oldest);
    oldest.readKey();
  }

  /**
   * Ends a record, which may not have been started here if its run type was unknown. Returns whether it was compared with
   * others.
   */
  end(call: RecordedCall, isBesideOthers: boolean): boolean {
    this.#open.delete(call);
    this.#unread.delete(call);
    const isBesideLatest = call.isLate && this.#latest.some(({ source }) => source !== call.source);
    const table = this.#tableFor(call, isBesideOthers || isBesideLatest);
    table?.end(call);
    if (table === undefined && call.responseId !== undefined && this.#latest.push(call) > 2 * LATEST_MAX) {
      this.#latest = this.#latest.slice(-LATEST_MAX);
    }
    return table !== undefined;
  }

  /** Removes an open record, for example because its run type has changed. */
  leave(call: RecordedCall): void {
    this.#open.delete(call);
    this.#unread.delete(call);
    this.#table?.remove(call);
  }

  /** Forgets ended records, unless a record is open that may be of one of their calls. */
  forgetEnded(): void {
    if (this.#open.size === 0) this.#table = undefined;
  }

  #tableFor(call: RecordedCall, isBesideOthers: boolean): CallTable | undefined {
    if (this.#open.size === 0 && this.#table === undefined) this.#source = call.source;
    if (this.#table === undefined && (isBesideOthers || call.source !== this.#source)) {
      this.#table = new CallTable((one, other) => isBelow(one as RecordedCall, other as RecordedCall));
      for (const other of this.#open) {
        other.readKey();
        this.#table.add(other);
      }
      for (const other of this.#latest) this.#table.keep(other);
      this.#latest = [];
    }
    if (this.#table !== undefined) call.readKey();
    return this.#table;
  }
}

function isBelow({ dottedOrder }: RecordedCall, above: RecordedCall): boolean {
  return dottedOrder.startsWith(above.dottedOrder) && dottedOrder[above.dottedOrder.length] === '.';
}

/** Number of spans after which a source is known to record no calls of which nothing is known at the start. */
const WITHOUT_CALL_MIN = 100;

class CallsOfSink {
  readonly #byType = new Map<string, CallsOfType>();
  /** The number of open spans by source that may turn out to be records of calls. */
  readonly #undecided = new Map<CallRecord['source'], number>();
  /** The number of such spans by source that recorded no call. */
  readonly #withoutCall = new Map<CallRecord['source'], number>();
  #sequence = 0;

  get nextSequence(): number {
    return ++this.#sequence;
  }

  start(call: RecordedCall): void {
    call.startSequence = this.nextSequence;
    this.#callsOf(call).start(call, this.#isBesideUndecided(call));
  }

  /** Returns whether the record was compared with others. */
  end(call: RecordedCall): boolean {
    const { source, isLate, isUndecided } = call;
    if (isUndecided) this.#forgetUndecided(source);
    // The next spans of the source are then in doubt.
    if (isLate) this.#withoutCall.set(source, Number.NEGATIVE_INFINITY);
    call.endSequence = this.nextSequence;
    const calls = this.#callsOf(call);
    const isCompared = calls.end(call, this.#isBesideUndecided(call));
    call.forgetInputs();
    if (this.#undecided.size === 0) calls.forgetEnded();
    return isCompared;
  }

  leave(call: RecordedCall): void {
    this.#byType.get(call.type)?.leave(call);
  }

  /**
   * Notes that a span has started that may turn out to record a call. Returns false if its source is known not to record
   * calls in such spans.
   */
  startUndecided(source: CallRecord['source']): boolean {
    if ((this.#withoutCall.get(source) ?? 0) >= WITHOUT_CALL_MIN) return false;
    this.#undecided.set(source, (this.#undecided.get(source) ?? 0) + 1);
    return true;
  }

  endUndecided(source: CallRecord['source']): void {
    this.#forgetUndecided(source);
    const ended = (this.#withoutCall.get(source) ?? 0) + 1;
    this.#withoutCall.set(source, ended);
    // Spans that never end are no longer in doubt either.
    if (ended >= WITHOUT_CALL_MIN) this.#undecided.delete(source);
    if (this.#undecided.size === 0) for (const calls of this.#byType.values()) calls.forgetEnded();
  }

  #forgetUndecided(source: CallRecord['source']): void {
    const others = (this.#undecided.get(source) ?? 0) - 1;
    if (others > 0) this.#undecided.set(source, others);
    else this.#undecided.delete(source);
  }

  #callsOf({ type }: CallRecord): CallsOfType {
    const calls = this.#byType.get(type) ?? new CallsOfType();
    this.#byType.set(type, calls);
    return calls;
  }

  #isBesideUndecided({ source }: CallRecord): boolean {
    return this.#undecided.size > (this.#undecided.has(source) ? 1 : 0);
  }
}

const calls: Slot<CallsOfSink> = shared('calls', () => makeSlot());

export function callsOfSink(sink: RunSink): CallsOfSink {
  const known = calls.get(sink);
  if (known !== undefined) return known;
  const created = new CallsOfSink();
  calls.set(sink, created);
  return created;
}

/** Starts the record of a call. Its run must be sent to `sink`. */
export function startCall(sink: RunSink, run: EncodedRun, start: CallStart): RecordedCall {
  const call = new RecordedCall(run, run.runType, start);
  callsOfSink(sink).start(call);
  return call;
}

/**
 * Ends a record of a call with its run. If another record of the call has ended before, the run names that one in its
 * metadata, and its usage moves aside if the other one has usage.
 */
export function endCall(sink: RunSink, call: RecordedCall, run: EncodedRun): void {
  call.hasFailed = run.error !== undefined;
  if (endsBeside(sink, call, run.metadata?.has(USAGE) === true)) markSame(call, run);
}

/** Ends a record of a call. Returns whether it was compared with others, so that `markSame` must be called. */
export function endsBeside(sink: RunSink, call: RecordedCall, hasUsage: boolean): boolean {
  call.hasUsage = hasUsage;
  return callsOfSink(sink).end(call);
}

/** Marks the run if another record of its call has ended before. */
export function markSame(call: RecordedCall, run: EncodedRun): void {
  encodeLazy(run);
  const usage = run.metadata?.get(USAGE) ?? usageIn(run.outputs)?.usage;
  call.hasUsage = usage !== undefined;
  const { same } = call;
  if (same === undefined) return;
  const { first } = same;
  const metadata = new Map(run.metadata).set(SAME_CALL, JSON.stringify(same.id));
  if (usage !== undefined && first.hasUsage) {
    metadata.delete(USAGE);
    metadata.set(SAME_CALL_USAGE, usage);
    // The outputs of the application's own functions stay as they are.
    if (call.source !== undefined) run.outputs = usageIn(run.outputs)?.rest ?? run.outputs;
  }
  first.hasUsage ||= usage !== undefined;
  run.metadata = metadata;
}

const USAGE_KEY = `"${USAGE}":`;

function usageIn(outputs: string | undefined): { readonly usage: string; readonly rest: string } | undefined {
  const at = outputs?.lastIndexOf(USAGE_KEY) ?? -1;
  if (outputs === undefined || at < 1) return undefined;
  // The library adds usage as the last field.
  const last = outputs.slice(at + USAGE_KEY.length, -1);
  if (isFields(parsedJson(last))) return { usage: last, rest: `${outputs.slice(0, at).replace(/,\s*$/, '')}}` };
  const fields = fieldsOf(parsedJson(outputs));
  if (!isFields(fields[USAGE])) return undefined;
  return { usage: exactJson(fields[USAGE]), rest: exactJson(without(fields, new Set([USAGE]))) };
}

import { clock } from '../base/clock.ts';
import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { shareInstances } from '../base/shared.ts';
import { safeText } from '../base/text.ts';
import { type AttachmentContent, PayloadAttachments, RunAttachments } from '../payload/attachment.ts';
import { abortReason, errorText, isAbort, isTimeout, leavesGraph, timeoutError } from '../payload/errors.ts';
import { fieldsOf, parseExact } from '../payload/fields.ts';
import { ChunkList, type EncodedPayload, encodePayload, shownName } from '../payload/serialize.ts';
import { completeUsage, metadataOfUsage } from '../payload/usage.ts';
import { callHooks, hooksOf, newEncodedRun, policyOf, prepareRun, type RunStart } from './begin.ts';
import { endCall, type RecordedCall, startCall } from './calls/calls.ts';
import { isCallType, SOURCES } from './calls/same-call.ts';
import { PACKAGE_COPY, type RunContext, type RunOwner, type RunStatus } from './context/context.ts';
import { activeSpan, contextOf, currentContext, observeRun } from './context/current.ts';
import { ownerWith, urlOf } from './context/inherited.ts';
import { endAfter } from './delayed-ends.ts';
import { describeOpenRun, type EncodedRun, encodeLazy, setPayload } from './encoded-run.ts';
import { addMetadata, EventList, type Fields, notInherited, withMetadata, withTags } from './fields.ts';
import type { HookedRun, RunChanges, RunHooks } from './hooks.ts';
import { LateContent, LateValue } from './late-content.ts';
import type { EndReason, RunType } from './record.ts';
import { areRunsMeasured, measureRun } from './run-meters.ts';
import {
  changeChecks,
  type EndOptions,
  endChecks,
  type Form,
  type RunOptions,
  runOptionChecks,
  type StartOptions,
  usableOptions,
} from './run-options.ts';
import type { CapturePolicy, RunSink } from './sink.ts';
import { isoTimestamp, timestampUs } from './time.ts';

/**
 * A traced operation, from start to end. `startRun` and `currentRun` return a `Run`. Each call to a traced function
 * creates a `Run`. No method throws. A run cannot be changed after it has ended. While tracing is off, runs record
 * nothing.
 */
export class Run implements HookedRun {
  readonly id: string;
  readonly traceId: string;
  readonly dottedOrder: string;
  readonly parentRunId: string | undefined;
  /** @internal */
  readonly sink: RunSink | undefined;
  /** @internal The context for nested runs. */
  readonly context: RunContext;
  /** @internal Whether the run still records data. False if the run has ended, or is neither sent nor measured. */
  isOpen: boolean;
  /** @internal The call that the run records. Undefined if it records none, or has ended. */
  call: RecordedCall | undefined;
  /**
   * @internal The traced call's abort signal. The reference is weak, because a listener on the signal may reference a
   * traced stream and keep the stream in memory.
   */
  signal: WeakRef<AbortSignal> | undefined;
  /** @internal The reason of the signal, if an integration has read it when the signal was aborted. */
  abortReason: unknown;
  /** @internal Whether an SDK has reported that the run was aborted, without a reason. */
  isAborted = false;
  /** @internal Of an open run, see `RunOwner`. */
  stoppedBy: RunOwner['stoppedBy'];
  /** @internal Resolves when the ended run may be delivered. Never rejects. Undefined if it may be delivered at once. */
  complete: Promise<unknown> | undefined;
  readonly #record: EncodedRun;
  readonly #startUs: number;
  readonly #startMonotonicUs: number;
  readonly #capture: CapturePolicy;
  /** The run above, which is told how this one has ended. */
  #above: RunOwner | undefined;
  #areInputsSet = false;
  #areOutputsSet = false;
  /** Undefined if there are no hooks, or after `onEnd` was called. */
  #hooks: readonly RunHooks[] | undefined;
  #events: EventList | undefined;
  #attachments: RunAttachments | undefined;
  #late: LateContent | undefined;

  /** @internal */
  constructor(start: RunStart) {
    const { options, parent, sink, sampling, capture, inputs, span } = start;
    const startMonotonicUs = clock.monotonicUs();
    const stampUs = clock.stampUs(startMonotonicUs);
    const startUs = options.startUs ?? stampUs;
    const record = newEncodedRun(start, startUs);
    this.id = record.id;
    this.traceId = record.traceId;
    this.dottedOrder = record.dottedOrder;
    this.parentRunId = record.parentRunId;
    this.sink = sink;
    this.#record = record;
    this.#startUs = startUs;
    this.#startMonotonicUs = startMonotonicUs - (stampUs - startUs);
    const isMeasured = !sampling.isSampled && sink !== undefined && areRunsMeasured();
    // Nothing of a measured run is sent, so no log line names attributes that are left out.
    this.#capture = isMeasured ? { ...capture, hideInputs: true, hideOutputs: true, isKept: () => true } : capture;
    // Nested runs inherit what a run starts with. The fields of a span are not inherited.
    const inherited = span === undefined ? record : { tags: record.tags, metadata: record.metadata };
    this.keepPayload('inputs', inputs);
    let status: RunStatus = 'kept';
    if (sink === undefined) {
      status = 'off';
    } else if (!sampling.isSampled) {
      sink.skip();
      status = 'sampledOut';
      if (isMeasured) span?.setRecord(record, this);
    } else if (!(span === undefined ? (record.held ?? sink).start(record, sink) : span.pass(record, this))) {
      status = 'refused';
    }
    this.isOpen = status === 'kept' || isMeasured;
    if (status === 'kept') observeRun(record, sink);
    this.#hooks = status === 'kept' ? hooksOf(capture.hooks, options) : undefined;
    if (this.isOpen && sink !== undefined) this.#above = ownerWith(sink, parent);
    if (this.#above?.stoppedBy) this.#above.stoppedBy = undefined;
    if (this.isOpen && span === undefined) this.#startCall(start);
    const active = span === undefined ? activeSpan() : undefined;
    this.context = contextOf(record, inherited, status, active, span ?? this, parent, options.hiding);
  }

  get runType(): RunType {
    return Run.#recordOf(this)?.runType ?? '';
  }

  get name(): string {
    return Run.#recordOf(this)?.name ?? '';
  }

  get url(): string | undefined {
    return Run.#recordOf(this) && guard('Run.url', () => urlOf(this.context));
  }

  get tags(): string[] {
    return [...(Run.#recordOf(this)?.tags ?? [])];
  }

  get metadata(): Record<string, unknown> {
    const entries = [...(Run.#recordOf(this)?.metadata ?? [])];
    return Object.fromEntries(entries.map(([key, json]) => [key, parseExact(json, String)]));
  }

  get inputs(): Record<string, unknown> | undefined {
    return parsedPayload(Run.#recordOf(this), 'inputs');
  }

  get outputs(): Record<string, unknown> | undefined {
    return parsedPayload(Run.#recordOf(this), 'outputs');
  }

  get error(): string | undefined {
    return Run.#recordOf(this)?.error;
  }

  /** @internal */
  get packageCopy(): object {
    return PACKAGE_COPY;
  }

  /** @internal */
  get capture(): CapturePolicy {
    return this.#capture;
  }

  /** Starts a nested run. Use `withRun` to make the nested run the current run. */
  child(options: RunOptions): Run {
    return startRunIn('Run.child', options, Run.#isAttached(this, 'child') ? this.context : undefined);
  }

  event(name: string, data?: Fields): void {
    if (!Run.#isAttached(this, 'event') || !this.isOpen) return;
    this.#events ??= new EventList();
    this.#events.add(safeText(name), this.#nowUs(), this.context.sampled ? data : undefined, this.#capture.payload);
  }

  set(changes: RunChanges): void {
    if (Run.#isAttached(this, 'set') && this.isOpen) this.#change(usableOptions('Run.set', changes, changeChecks));
  }

  attach(name: string, content: AttachmentContent, mimeType?: string): void {
    guard('Run.attach', () => {
      if (!Run.#isAttached(this, 'attach') || !this.isOpen || !this.context.sampled) return;
      this.#ownAttachments.attach(name, content, mimeType);
    });
  }

  /**
   * Ends the run and records `outputs`. A plain object is recorded unchanged. Any other value is recorded as
   * `{ outputs: value }`. If `outputs` is undefined, the outputs passed to `set` are kept. Calling `end` again has no
   * effect.
   */
  end(outputs?: unknown, options?: EndOptions): void {
    if (!Run.#isAttached(this, 'end') || !this.isOpen) return;
    if (outputs !== undefined) this.#setOutputs(outputs);
    this.finish(options && this.#endUsIn('Run.end', options));
  }

  /** Ends the run with an error. `error` can be any thrown value. Outputs passed to `set` are kept. */
  fail(error: unknown, options?: EndOptions): void {
    if (!Run.#isAttached(this, 'fail') || !this.isOpen) return;
    if (leavesGraph(error)) {
      this.event(String(fieldsOf(error).name));
      return void this.end(undefined, options);
    }
    const reason = this.#reason(error);
    const isAborted = isAbort(error, this.traceId, reason, this.isAborted);
    this.stoppedBy = isTimeout(error) || isTimeout(reason) ? 'timeout' : undefined;
    const text = errorText(error, this.#capture.payload.redaction, reason) || 'Error';
    this.#stop(isAborted ? 'cancelled' : undefined, text, options && this.#endUsIn('Run.fail', options));
  }

  /** @internal Called when the consumer stops reading a streamed result. A timeout of the call is a failure. */
  cancel(): void {
    const reason = this.#reason();
    if (isTimeout(reason)) this.fail(reason);
    else this.#stop('cancelled', undefined);
  }

  /** @internal Called when the end of a streamed result cannot be observed. */
  interrupt(reason: string): void {
    this.#stop('interrupted', `Interrupted: ${reason}`);
  }

  /** Ends the run at the end of a `using` block, if the run is still open. */
  [Symbol.dispose](): void {
    if (Run.#isAttached(this, 'end')) this.end();
  }

  /** @internal Returns the fields to record if a payload contains this run. */
  toJSON(): { id: string; traceId: string; name: string } {
    const { id, traceId, name } = this;
    return { id, traceId, name };
  }

  /** @internal Calls the `onStart` hooks, once the run has started. */
  started(): void {
    if (this.#hooks === undefined) return;
    describeOpenRun(this.#record);
    callHooks('onStart', this.#hooks, this);
  }

  /** @internal Adds hooks, which are called after existing hooks, or before them if `isFirst` is true. */
  addHooks(hooks: RunHooks, isFirst: boolean = false): void {
    const existing = this.#hooks ?? [];
    if (this.isOpen) this.#hooks = isFirst ? [hooks, ...existing] : [...existing, hooks];
  }

  /** @internal */
  chunkList(): ChunkList | undefined {
    if (this.#capture.hideOutputs || this.#areOutputsSet) return undefined;
    const { payload, attachmentBytes } = this.#capture;
    return new ChunkList(
      payload,
      () => new PayloadAttachments('outputs', attachmentBytes, this.#attachments),
      (attachments) => this.#ownAttachments.keep('chunks', attachments),
    );
  }

  /** @internal Records what was read of the traced call's inputs, unless the application has set `inputs`. */
  keepInputs(inputs: unknown): void {
    if (LateValue.is(inputs)) this.keepLate('inputs', inputs);
    else if (this.isOpen && !this.#areInputsSet && !this.#capture.hideInputs)
      setPayload(this.#record, 'inputs', this.#encode('inputs', inputs));
  }

  /** @internal Records the traced call's result as outputs, unless the application has set `outputs`. */
  keepResult(result: unknown): void {
    if (LateValue.is(result)) this.keepLate('outputs', result);
    else if (result !== undefined && this.isOpen && !this.#areOutputsSet) this.#setOutputs(result);
  }

  /**
   * @internal Records a payload when it arrives, unless the application has set the field. The sink receives the end of
   *   the run after that.
   */
  keepLate(field: 'inputs' | 'outputs', value: LateValue): void {
    const isSet = (): boolean => (field === 'inputs' ? this.#areInputsSet : this.#areOutputsSet);
    if (!this.isOpen || isSet() || this.#capture[field === 'inputs' ? 'hideInputs' : 'hideOutputs']) return;
    this.#late ??= new LateContent(this.#record);
    this.#late.add(value, (content) => {
      if (!isSet()) setPayload(this.#record, field, this.#encode(field, content));
    });
  }

  /** @internal Records an encoded payload, unless the application has set the field. */
  keepPayload(field: 'inputs' | 'outputs', payload: EncodedPayload | undefined): void {
    if (payload === undefined || (field === 'inputs' ? this.#areInputsSet : this.#areOutputsSet)) return;
    this.#attachments?.forget(field);
    setPayload(this.#record, field, payload);
    if (payload.attachments !== undefined) this.#ownAttachments.keep(field, payload.attachments);
  }

  /**
   * Whether a method was called on a run. False for a proxy of a run, or for a detached method as in
   * `promise.catch(run.fail)`.
   */
  static #isAttached(self: unknown, method: string): boolean {
    if (Run.#recordOf(self) !== undefined) return true;
    diagnostics.warnOnce(
      `Run.${method} alone`,
      `Run.${method}: expected a call on a run, got a call without a run or on a proxy; nothing is recorded. Pass \`(value) => run.${method}(value)\` instead of \`run.${method}\`.`,
    );
    return false;
  }

  static #recordOf(self: unknown): EncodedRun | undefined {
    return typeof self === 'object' && self !== null && #record in self ? self.#record : undefined;
  }

  /** Returns why the run was aborted. If an SDK tells that it was, without its error, a timeout below is the reason. */
  #reason(error?: unknown): unknown {
    const known = this.abortReason ?? abortReason(this.signal?.deref());
    if (known !== undefined || !this.isAborted || typeof error === 'object') return known;
    return this.stoppedBy === 'timeout' ? timeoutError() : 'aborted';
  }

  #change(changes: Partial<RunChanges>): void {
    const record = this.#record;
    const { payload, hideInputs } = this.#capture;
    if (changes.name !== undefined) record.name = shownName(changes.name, payload);
    record.tags = withTags(record.tags, changes.tags, payload);
    if (changes.metadata !== undefined) this.#addMetadata(changes.metadata);
    const { usage } = changes;
    if (usage !== undefined) {
      const checked = guard('Run.set', () => metadataOfUsage(completeUsage(usage)));
      this.#addMetadata(checked ?? { usage_metadata: usage });
    }
    if (changes.inputs !== undefined) {
      this.#areInputsSet = true;
      if (!hideInputs) setPayload(record, 'inputs', this.#encode('inputs', changes.inputs));
    }
    if (changes.outputs === undefined) return;
    this.#areOutputsSet = true;
    this.#setOutputs(changes.outputs);
  }

  #stop(endReason: EndReason | undefined, error: string | undefined, endUs?: number): void {
    // A getter on the error may have ended the run in the meantime.
    if (!this.isOpen) return;
    if (endReason !== undefined) {
      this.stoppedBy = endReason === 'cancelled' ? 'abort' : undefined;
      this.#record.endReason = endReason;
    }
    this.#record.error ??= error;
    this.finish(endUs);
  }

  /** @internal */
  finish(givenUs?: number): void {
    // A getter or `toJSON` in the payload may have ended the run in the meantime.
    if (!this.isOpen) return;
    const record = this.#record;
    const endUs = givenUs ?? this.#nowUs();
    const hooks = this.#hooks;
    if (hooks !== undefined) {
      this.#hooks = undefined;
      callHooks('onEnd', hooks, this);
      // A hook may have ended the run.
      if (!this.isOpen) return;
    }
    if (this.#events !== undefined) {
      const { dropped } = this.#events;
      const json = this.#events.toJson();
      record.events = record.events === undefined ? json : `${record.events.slice(0, -1)},${json.slice(1)}`;
      if (dropped > 0) this.#addMetadata({ dropped_events: dropped });
    }
    record.endTime = isoTimestamp(endUs);
    record.source = undefined;
    this.isOpen = false;
    const above = this.#above;
    const stoppedBy = (record.error ?? record.endReason) === undefined ? undefined : this.stoppedBy;
    if (above !== undefined && above.stoppedBy !== stoppedBy) above.stoppedBy = stoppedBy;
    // Frees the events and attachments, because the application may keep a reference to the run.
    this.#events = undefined;
    this.#attachments = undefined;
    if (this.#late === undefined) this.#deliver(endUs);
    else this.#late.whenSettled(() => this.#deliver(endUs));
  }

  #startCall({ options, sink, call }: RunStart): void {
    if (sink === undefined || !isCallType(this.#record.runType)) return;
    this.call = startCall(sink, this.#record, { source: options.source, ...call });
    if (options.metadata !== undefined) guard('metadata', () => this.call?.read(options.metadata as object));
    this.#above?.callStarted?.(this.call);
  }

  #deliver(endUs: number): void {
    const { call, sink } = this;
    const record = this.#record;
    this.call = undefined;
    if (call !== undefined && sink !== undefined) {
      endCall(sink, call, record);
      this.#above?.callEnded?.(call);
    }
    this.#above = undefined;
    measureRun(record, this.#startUs, endUs);
    if (!this.context.sampled) return;
    observeRun(record, sink);
    if (sink === undefined) return;
    const target = record.held ?? sink;
    if (this.complete === undefined) target.end(record, sink);
    else endAfter(this.complete, record, () => target.end(record, sink));
  }

  #endUsIn(place: string, options: EndOptions): number | undefined {
    const us = timestampUs(usableOptions(place, options, endChecks).endTime);
    return us === undefined ? undefined : Math.max(us, this.#startUs);
  }

  /**
   * Returns the start time plus the elapsed monotonic time. Changes to the system clock therefore do not affect
   * durations.
   */
  #nowUs(): number {
    return this.#startUs + Math.max(0, Math.floor(clock.monotonicUs() - this.#startMonotonicUs));
  }

  #setOutputs(outputs: unknown): void {
    if (this.#capture.hideOutputs) return;
    const payload = this.#encode('outputs', outputs);
    if (this.isOpen) setPayload(this.#record, 'outputs', payload);
  }

  #encode(field: 'inputs' | 'outputs', value: unknown): EncodedPayload {
    this.#attachments?.forget(field);
    const policy = policyOf(this.#capture, this.#record.held?.state === 'held');
    const payload = encodePayload(field, value, policy, this.#attachments);
    if (payload.attachments !== undefined) this.#ownAttachments.keep(field, payload.attachments);
    return payload;
  }

  get #ownAttachments(): RunAttachments {
    this.#attachments ??= new RunAttachments(this.#record, this.#capture);
    return this.#attachments;
  }

  /** Copies the metadata map before adding entries, because nested runs share the map. */
  #addMetadata(added: Fields): void {
    const { metadata } = this.#record;
    this.call?.read(added);
    if (metadata !== undefined && metadata !== this.context.metadata) {
      addMetadata(metadata as Map<string, string>, added, this.#capture.payload);
    } else {
      this.#record.metadata = withMetadata(metadata, added, this.#capture.payload);
    }
  }
}

shareInstances({ Run });

/** The data that an integration records for one call. */
export interface CallDescription {
  /** The run's name, if it differs from the plan's name. */
  readonly name?: string;
  readonly inputs: Readonly<Record<string, unknown>>;
  /** Metadata to add to the run's metadata. Nested runs do not inherit it. */
  readonly metadata?: Fields;
  /** `thread_id` and `user_id` from the request. A run keeps the ids that it inherits. */
  readonly ids?: Fields | undefined;
  /** Payloads of this call that are not recorded. */
  readonly hiding?: Pick<StartOptions, 'hideInputs' | 'hideOutputs'> | undefined;
  /** Called after the run has started, before its hooks. May throw. */
  readonly started?: ((run: Run) => void) | undefined;
  /** If the call fails after this signal is aborted, the run ends as cancelled, unless the reason is a timeout. */
  readonly signal?: AbortSignal | undefined;
}

export function beginRun(start: RunStart, description?: Omit<CallDescription, 'inputs'>): Run {
  const run = new Run(start);
  if (description !== undefined) {
    const { ids, metadata, signal, started } = description;
    const { source, metadata: given } = start.options;
    const sources = source && { [SOURCES]: [source] };
    if (metadata !== undefined)
      run.set({ metadata: { ...notInherited(ids, run.context.metadata), ...metadata, ...sources, ...given } });
    run.signal = signal && new WeakRef(signal);
    if (started !== undefined) guard('traceable', () => started(run));
  }
  run.started();
  return run;
}

/** Checks the options of a run and starts it. `around` is the current context by default. */
export function startRunIn(place: string, given: RunOptions, around?: RunContext, form?: Form): Run {
  const { name = 'run', inputs, startTime, ...others } = usableOptions<RunOptions>(place, given, runOptionChecks);
  const options: StartOptions = { ...others, ...form, name };
  if (startTime !== undefined) options.startUs = timestampUs(startTime) ?? 0;
  return beginRun(prepareRun(options, around ?? currentContext(options.exporter), inputs));
}

function parsedPayload(run: EncodedRun | undefined, field: 'inputs' | 'outputs'): Record<string, unknown> | undefined {
  if (run !== undefined) encodeLazy(run);
  const json = run?.[field];
  return json === undefined ? undefined : parseExact(json, String);
}

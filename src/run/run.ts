import { bare } from '../base/bare.ts';
import type { Checks } from '../base/checked-options.ts';
import { clock } from '../base/clock.ts';
import { diagnostics } from '../base/diagnostics.ts';
import { guard } from '../base/guard.ts';
import { safeText } from '../base/text.ts';
import type { AttachmentContent } from '../payload/attachment.ts';
import { type AttachingPayload, PayloadAttachments, RunAttachments } from '../payload/attachments.ts';
import { errorText, isAbort } from '../payload/errors.ts';
import { ChunkList, type EncodedPayload, encodePayload, eventJson, shownName } from '../payload/serialize.ts';
import {
  activeSpan,
  contextOf,
  currentContext,
  type Inherited,
  type ModelCall,
  type RunContext,
  SinkHandle,
} from './context.ts';
import { dottedOrder } from './dotted-order.ts';
import { type EncodedRun, newRecord, projectText } from './encoded-run.ts';
import { newRunId } from './ids.ts';
import { addMetadata, withMetadata } from './metadata.ts';
import type { RunType, UsageMetadata } from './record.ts';
import {
  type Fields,
  type Hiding,
  hidingCapture,
  projectIn,
  type RunOptions,
  runOptionChecks,
  usableOptions,
} from './run-options.ts';
import { type CapturePolicy, currentSink, type RunSink } from './sink.ts';
import { withTags } from './tags.ts';
import { isoTimestamp } from './timestamp.ts';
import { completeUsage } from './usage.ts';

/** What `Run.set` may change while the run is open. */
export interface RunChanges {
  name?: string;
  /** Added to those it has, up to 1 000; further ones are left out. */
  tags?: readonly string[];
  /** Added to what it has, key by key, up to 10 000 keys; further ones are left out. */
  metadata?: Fields;
  inputs?: Fields;
  outputs?: unknown;
  /** Token counts and costs of a model call. */
  usage?: UsageMetadata;
}

const changeChecks: Checks<RunChanges> = {
  name: runOptionChecks.name,
  tags: runOptionChecks.tags,
  metadata: runOptionChecks.metadata,
  inputs: runOptionChecks.inputs,
  outputs: ['anything', () => true],
  usage: runOptionChecks.metadata,
};

/** Events kept per run; later ones are counted in `extra.metadata.dropped_events`. */
const EVENTS_MAX = 10_000;

/**
 * One traced piece of work, from its start to its end. You get one from `startRun` or `currentRun`; wrapped functions
 * make theirs themselves. No method throws, and nothing changes once the run has ended. With tracing off it is there all
 * the same and records nothing.
 */
export class Run {
  /** UUIDv7, or the id that you gave. */
  readonly id: string;
  /** The id of the first run of the trace. */
  readonly traceId: string;
  /** Its place in the trace: start and id of every run from the first down to this one. */
  readonly dottedOrder: string;
  readonly parentRunId: string | undefined;
  readonly runType: RunType;
  /** @internal */
  readonly sink: RunSink | undefined;
  /** @internal What runs that start below this one are told. */
  readonly context: RunContext;
  /** @internal The call of a model that it is, until it ends. */
  modelCall: ModelCall | undefined;
  readonly #record: EncodedRun;
  readonly #startUs: number;
  readonly #startMonotonicUs: number;
  readonly #isAccepted: boolean;
  /** The capture policy, if the run's own options hide payloads. */
  readonly #hidingCapture: CapturePolicy | undefined;
  #events: string[] | undefined;
  #eventCharacters = 0;
  #attachments: RunAttachments | undefined;
  #droppedEvents = 0;
  #areOutputsSet = false;
  /** Metadata that nobody else has. */
  #ownMetadata: Map<string, string> | undefined;

  /** @internal The options have been checked; `inputs` are encoded already. */
  constructor(
    options: Omit<RunOptions, 'inputs'> & Hiding,
    parent: RunContext | undefined,
    sink: RunSink | undefined,
    inputs?: EncodedPayload,
    verdict: Verdict = KEPT,
  ) {
    this.#startMonotonicUs = clock.monotonicUs();
    this.#startUs = clock.stampUs(this.#startMonotonicUs);
    this.id = verdict.id ?? options.id?.toLowerCase() ?? newRunId(this.#startUs);
    this.traceId = parent?.traceId ?? this.id;
    this.dottedOrder = dottedOrder(parent?.dottedOrder, this.#startUs, this.id);
    this.parentRunId = parent?.id;
    this.runType = options.runType ?? 'chain';
    this.sink = sink;
    this.#hidingCapture = sink && hidingCapture(options, sink.capture);
    const inherited = inheritedFrom(parent, sink);
    const project = projectIn(options) ?? parent?.project ?? sink?.capture.project ?? 'default';
    this.#record = newRecord({
      id: this.id,
      traceId: this.traceId,
      dottedOrder: this.dottedOrder,
      parentRunId: this.parentRunId,
      startTime: isoTimestamp(this.#startUs),
      project,
      refused: parent?.refused ?? false,
      name: sink === undefined ? options.name : shownName(options.name, sink.capture.payload),
      runType: this.runType,
      tags: sink === undefined ? undefined : withTags(inherited.tags, options.tags, sink.capture.payload),
      metadata: inherited.metadata,
    });
    if (inputs !== undefined) this.#record.inputs = this.#taken('inputs', inputs);
    if (options.metadata !== undefined && sink !== undefined) this.#addMetadata(options.metadata);
    if (verdict.isKept) this.#isAccepted = sink?.start(this.#record) ?? false;
    else {
      this.#isAccepted = false;
      sink?.skip();
    }
    const fate = this.#isAccepted || sink === undefined ? 'kept' : verdict.isKept ? 'refused' : 'sampledOut';
    this.context = contextOf(this.#record, this.#record, fate, activeSpan(), this);
  }

  get name(): string {
    return #record in this ? this.#record.name : '';
  }

  /** @internal Whether anything that is told to the run will be sent. */
  get isOpen(): boolean {
    return this.#isAccepted && this.#record.endTime === undefined;
  }

  /** Starts a run below this one. It does not become the current run; `withRun` does that. */
  child(options: RunOptions): Run {
    return beginRun('Run.child', options, Run.#isOwner(this, 'child') ? this.context : currentContext());
  }

  /** Records that something happened now. `data` is copied. A run keeps 10 000 events, or one payload's worth of text, and counts the rest. */
  event(name: string, data?: Fields): void {
    if (!Run.#isOwner(this, 'event') || !this.isOpen) return;
    this.#events ??= [];
    if (this.#events.length >= EVENTS_MAX || this.#eventCharacters >= this.#capture.payload.bytes) {
      this.#droppedEvents++;
      return;
    }
    const event = eventJson(safeText(name), isoTimestamp(this.#nowUs()), data, this.#capture.payload);
    this.#eventCharacters += event.length;
    this.#events.push(event);
  }

  /**
   * Replaces or extends recorded fields of the run. Values are copied immediately. In a wrapped function, `outputs` set
   * here take precedence over the function's result and the `outputs` option.
   */
  set(changes: RunChanges): void {
    if (Run.#isOwner(this, 'set') && this.isOpen) this.#change(usableOptions('Run.set', changes, changeChecks));
  }

  /**
   * Attaches bytes or a `Blob` to the run, for example an image that was sent to a model. Bytes are copied. A `Blob` is read
   * when it is sent, so `fs.openAsBlob(path)` attaches a file without holding it in memory.
   *
   * A name is unique in its run, has at most 256 characters and no dot. `mimeType` defaults to the type of the `Blob`, else to
   * `application/octet-stream`. A run has at most 100 attachments of `limits.attachmentBytes` in all. An attachment that
   * exceeds a limit, or is neither bytes nor a `Blob`, is left out with one log line.
   */
  attach(name: string, content: AttachmentContent, mimeType?: string): void {
    guard('Run.attach', () => {
      if (Run.#isOwner(this, 'attach') && this.isOpen) this.#ownAttachments.attach(name, content, mimeType);
    });
  }

  /**
   * Ends the run. A plain object is its outputs, `undefined` leaves those given by `set`, any other value becomes
   * `{ outputs: value }`. Only the first end counts.
   */
  end(outputs?: unknown): void {
    if (!Run.#isOwner(this, 'end') || !this.isOpen) return;
    if (outputs !== undefined) this.#setOutputs(outputs);
    this.#finish();
  }

  /** Ends the run with an error: whatever was thrown. Outputs given by `set` are kept. */
  fail(error: unknown): void {
    if (!Run.#isOwner(this, 'fail') || !this.isOpen) return;
    const isCancelled = isAbort(error);
    const text = errorText(error, this.#capture.payload.redaction);
    if (!this.isOpen) return;
    if (isCancelled) this.#noteEnd('cancelled');
    this.#record.error = text;
    this.#finish();
  }

  /** @internal Ends the run with what came, because its caller wanted no more. */
  cancel(): void {
    if (!this.isOpen) return;
    this.#noteEnd('cancelled');
    this.#finish();
  }

  /** @internal Ends the run of a result whose end will not be seen. */
  interrupt(reason: string): void {
    if (!this.isOpen) return;
    this.#noteEnd('interrupted');
    this.#record.error = `Interrupted: ${reason}`;
    this.#finish();
  }

  /** Ends the run when a `using` block is left, unless it has ended already. */
  [Symbol.dispose](): void {
    if (Run.#isOwner(this, 'end')) this.end();
  }

  /** @internal What a payload tells of a run that is in it: how to find it, and nothing of where it goes. */
  toJSON(): { id: string; traceId: string; name: string } {
    const { id, traceId, name } = this;
    return { id, traceId, name };
  }

  /** @internal Returns a list for the chunks of the result, or undefined if chunks are not recorded. */
  chunkList(): ChunkList | undefined {
    if (this.#capture.hideOutputs || this.#areOutputsSet) return undefined;
    const { payload, attachmentBytes } = this.#capture;
    return new ChunkList(
      payload,
      () => new PayloadAttachments('outputs', attachmentBytes, this.#attachments),
      (attachments) => this.#ownAttachments.keep('chunks', attachments),
    );
  }

  /** @internal Returns the JSON text of one chunk, or `null` if chunks are not recorded. */
  encode(value: unknown): string {
    const list = this.chunkList();
    list?.add(value);
    return list?.json().slice(1, -1) ?? 'null';
  }

  /** @internal Records the result of the traced call as outputs, unless the application has set `outputs`. */
  keepResult(result: unknown): void {
    if (result !== undefined && this.isOpen && !this.#areOutputsSet) this.#setOutputs(result);
  }

  /** @internal Like `keepResult`, for a result that is the JSON text of an object. */
  keepOutputs(outputs: string): void {
    if (!this.isOpen || this.#areOutputsSet || this.#capture.hideOutputs) return;
    this.#attachments?.forget('outputs');
    this.#record.outputs = outputs;
  }

  /** Whether a method has its run. One that was taken off it, as in `promise.catch(run.fail)`, has not, nor has a proxy. */
  static #isOwner(self: unknown, method: string): boolean {
    if (typeof self === 'object' && self !== null && #record in self) return true;
    diagnostics.warnOnce(
      `Run.${method} alone`,
      `Run.${method}: expected to be called on its run, got it alone, or on a proxy; nothing is recorded. Instead of \`run.${method}\` pass on \`(value) => run.${method}(value)\`.`,
    );
    return false;
  }

  #change(changes: Partial<RunChanges>): void {
    const record = this.#record;
    if (changes.name !== undefined) record.name = shownName(changes.name, this.#capture.payload);
    record.tags = withTags(record.tags, changes.tags, this.#capture.payload);
    if (changes.metadata !== undefined) this.#addMetadata(changes.metadata);
    const { usage } = changes;
    if (usage !== undefined) {
      this.#addMetadata({ usage_metadata: guard('Run.set', () => completeUsage(usage)) ?? usage });
    }
    if (changes.inputs !== undefined && !this.#capture.hideInputs) {
      record.inputs = this.#encode('inputs', changes.inputs);
    }
    if (changes.outputs === undefined) return;
    this.#areOutputsSet = true;
    this.#setOutputs(changes.outputs);
  }

  #noteEnd(reason: 'cancelled' | 'interrupted'): void {
    this.#addMetadata({ end_reason: reason });
  }

  #finish(): void {
    // What the payload brings along, a getter or toJSON, may have ended the run meanwhile.
    if (!this.isOpen) return;
    const record = this.#record;
    if (this.#events !== undefined) record.events = `[${this.#events.join(',')}]`;
    this.#events = undefined;
    if (this.#droppedEvents > 0) this.#addMetadata({ dropped_events: this.#droppedEvents });
    record.endTime = isoTimestamp(this.#nowUs());
    // The application may keep the run for long.
    this.#attachments = undefined;
    this.modelCall = undefined;
    this.sink?.end(record);
  }

  /** Start and what has passed since: a wall clock that is set meanwhile changes no duration. */
  #nowUs(): number {
    return this.#startUs + Math.max(0, Math.floor(clock.monotonicUs() - this.#startMonotonicUs));
  }

  #setOutputs(outputs: unknown): void {
    if (this.#capture.hideOutputs) return;
    const json = this.#encode('outputs', outputs);
    if (this.isOpen) this.#record.outputs = json;
  }

  /** JSON text of a payload that takes the place of the one before, attachments and all. */
  #encode(field: 'inputs' | 'outputs', value: unknown): string {
    this.#attachments?.forget(field);
    return this.#taken(field, encodePayload(field, value, this.#capture, this.#attachments));
  }

  #taken(payload: AttachingPayload, { json, attachments }: EncodedPayload): string {
    if (attachments !== undefined) this.#ownAttachments.keep(payload, attachments);
    return json;
  }

  get #ownAttachments(): RunAttachments {
    this.#attachments ??= new RunAttachments(this.#record, this.#capture);
    return this.#attachments;
  }

  #addMetadata(added: Fields): void {
    const own = this.#ownMetadata;
    if (own !== undefined && own === this.#record.metadata) {
      addMetadata(own, added, this.#capture.payload);
      return;
    }
    const metadata = withMetadata(this.#record.metadata, added, this.#capture.payload);
    this.#record.metadata = metadata;
    // What the run starts with is taken over by those below, what comes later is its own.
    if (this.context !== undefined) this.#ownMetadata = metadata;
  }

  get #capture(): RunSink['capture'] {
    return this.#hidingCapture ?? (this.sink as RunSink).capture;
  }
}

/** Starts a run below `parent`, in its sink unless the options name another. `place` is where the options were given. */
export function beginRun(place: string, given: RunOptions, parent: RunContext | undefined): Run {
  const options = usableOptions<RunOptions>(place, given, runOptionChecks);
  const above = options.root === true ? undefined : parent;
  const sink = options.exporter ?? sinkOf(above);
  const named = bare(options, { name: options.name ?? 'run' });
  const verdict = verdictOn(named, above, sink);
  const isWanted = options.inputs !== undefined && verdict.isKept && above?.refused !== true;
  const isCaptured = isWanted && sink?.capture.hideInputs === false && options.hideInputs === undefined;
  const inputs = isCaptured ? encodePayload('inputs', options.inputs, sink.capture) : undefined;
  return new Run(named, above, sink, inputs, verdict);
}

/** Where a run below this context goes: where its parent went, when this copy of the package made the parent. */
export function sinkOf(parent: RunContext | undefined): RunSink | undefined {
  if (parent === undefined) return currentSink();
  const { exporter, handle } = parent;
  if (exporter !== undefined) return exporter;
  return handle instanceof Run || handle instanceof SinkHandle ? handle.sink : currentSink();
}

const NOTHING: Inherited = { tags: undefined, metadata: undefined };

/** What a run takes over from the one above: nothing where that goes elsewhere, to people who may be shown other things. */
export function inheritedFrom(parent: RunContext | undefined, sink: RunSink | undefined): Inherited {
  if (parent === undefined) return NOTHING;
  const { handle } = parent;
  const isElsewhere = (handle instanceof Run || handle instanceof SinkHandle) && handle.sink !== sink;
  return isElsewhere ? NOTHING : parent;
}

/** What sampling says of a run that is about to start. */
export interface Verdict {
  readonly isKept: boolean;
  /** The id that the run gets: that of a new trace has to be known before. */
  readonly id: string | undefined;
}

const KEPT: Verdict = { isKept: true, id: undefined };
const LEFT_OUT: Verdict = { isKept: false, id: undefined };

/** Asks the sink's sampling at the first run of a trace; the others go with it. */
export function verdictOn(
  options: Omit<RunOptions, 'inputs'>,
  parent: RunContext | undefined,
  sink: RunSink | undefined,
): Verdict {
  if (parent?.sampled === false) return LEFT_OUT;
  const isKept = sink?.capture.sampling;
  if (sink === undefined || isKept === undefined || parent?.id !== undefined) return KEPT;
  const id = options.id?.toLowerCase() ?? newRunId(clock.nowUs());
  const { name, runType = 'chain' } = options;
  const project = projectText(projectIn(options) ?? sink.capture.project);
  return { isKept: isKept({ traceId: id, name, runType, project }), id };
}

import type { WaitingAttachment } from '../payload/attachment.ts';
import { shownError } from '../payload/errors.ts';
import { fieldsOf, isPlainObject, parseExact, textOf } from '../payload/fields.ts';
import { MASK } from '../payload/redaction/redact.ts';
import { encodePayload, shownName } from '../payload/serialize.ts';
import { SAME_CALL } from '../run/calls/same-call.ts';
import { untraced } from '../run/context/current.ts';
import { describeOpenRun, type EncodedRun, type Project, type RunSource, releaseRun } from '../run/encoded-run.ts';
import { withMetadata, withTags } from '../run/fields.ts';
import { LateContent, LateValue, reportHidden } from '../run/late-content.ts';
import { type CapturePolicy, flushed, noopSink, type RunSink } from '../run/sink.ts';
import type { KVMap } from './types.ts';

/** A function of the application that returns what to record instead of a value, or a promise of it. */
export type MaskFunction = (values: KVMap) => unknown;

/** What is hidden: `true` hides a field, and a function changes it. */
export type Masks = Readonly<Record<Field, boolean | MaskFunction>>;

type Field = 'inputs' | 'outputs' | 'metadata' | 'error';

/** The options of `Client`, for log lines. */
const OPTIONS: Readonly<Record<Field, string>> = {
  inputs: 'hideInputs',
  outputs: 'hideOutputs',
  metadata: 'hideMetadata',
  error: 'anonymizer',
};

const NO_MASKS: Masks = { inputs: false, outputs: false, metadata: false, error: false };

/** The project of a copy. `idOf` returns its ids, if they are not those of the run. */
export interface CopyPlace {
  readonly project: Project | undefined;
  readonly idOf?: (id: string) => string;
}

/** A sink that receives copies of runs. */
export interface Target {
  readonly sink: () => RunSink;
  readonly place?: (runProject: CopyPlace['project']) => CopyPlace;
  /** Fields of a run in LangSmith's format, in which the copies differ. */
  readonly updates?: KVMap;
}

/**
 * Returns a sink that passes a copy of each run to each target for which tracing is on. The settings of `base` decide
 * what is recorded, or those of the first target while `base` is off. A target never sees what a mask has not returned,
 * so no queue, request or file contains it.
 */
export function copyingSink(
  base: () => RunSink,
  masks: Masks = NO_MASKS,
  targets: readonly Target[] = [{ sink: base }],
): RunSink {
  const active = (): readonly Target[] => targets.filter(({ sink }) => sink().isOff !== true);
  let known: { readonly given: CapturePolicy; readonly capture: CapturePolicy } | undefined;
  const leading = (): RunSink => (base().isOff === true ? active()[0]?.sink() : base()) ?? noopSink;
  const capture = (): CapturePolicy => {
    const given = leading().capture;
    if (known?.given !== given) known = { given, capture: maskedCapture(given, masks) };
    return known.capture;
  };
  const sinks = (): readonly RunSink[] => [...new Set(targets.map(({ sink }) => sink()))];
  return {
    get capture() {
      return capture();
    },
    get hold() {
      return leading().hold;
    },
    get isOff() {
      return (active().length === 0) as true;
    },
    start(run) {
      const copies = active()
        .map((target) => new RunCopy(run, target, masks, capture()))
        .filter((copy) => copy.start());
      run.sinkState = copies;
      return copies.length > 0;
    },
    end(run) {
      for (const copy of run.sinkState as RunCopy[]) copy.end();
      releaseRun(run);
    },
    skip() {
      for (const { sink } of active()) sink().skip();
    },
    urlOf(run) {
      const [target] = active();
      const { project, idOf = (id) => id }: CopyPlace = target?.place?.(run.project) ?? { project: run.project };
      return target?.sink().urlOf?.({ id: idOf(run.id), traceId: idOf(run.traceId), project });
    },
    flush: (limit) => flushed(sinks().map((sink) => sink.flush(limit))),
    close: (limit) => flushed(sinks().map((sink) => sink.close(limit))),
  };
}

function maskedCapture(capture: CapturePolicy, masks: Masks): CapturePolicy {
  const own = { ...capture, replication: undefined };
  if (masks === NO_MASKS) return own;
  return {
    ...own,
    hideInputs: capture.hideInputs || masks.inputs === true,
    hideOutputs: capture.hideOutputs || masks.outputs === true,
    hidesMetadata: masks.metadata !== false,
    // A function must see binary values and data URIs, and not only the name of an attachment.
    payload: { ...capture.payload, isInline: true },
  };
}

class RunCopy implements RunSource {
  readonly #run: EncodedRun;
  readonly #copy: EncodedRun;
  readonly #sink: RunSink;
  readonly #masks: Masks;
  readonly #capture: CapturePolicy;
  readonly #updates: KVMap;
  readonly #idOf: CopyPlace['idOf'];
  readonly #late: LateContent;
  /** The value of each field that was copied last, or its JSON text if it was masked. */
  readonly #seen: Partial<Record<Field, unknown>> = {};
  #attachments: readonly WaitingAttachment[] = [];

  constructor(run: EncodedRun, { sink, place, updates = {} }: Target, masks: Masks, capture: CapturePolicy) {
    this.#run = run;
    this.#sink = sink();
    this.#masks = masks;
    this.#capture = capture;
    this.#updates = updates;
    const placement = place?.(run.project);
    const placed = placement && placedIn(run, placement);
    this.#idOf = placement?.idOf;
    this.#copy = { ...run, ...placed, sinkState: undefined, endTime: undefined, source: this };
    this.#late = new LateContent(this.#copy);
    releaseRun(this.#copy);
  }

  start(): boolean {
    return this.#sink.start(this.#copy);
  }

  /** Called before the target sends or stores the open run, so most masks are called once, when the run ends. */
  describe(): void {
    const run = this.#run;
    describeOpenRun(run);
    const { payload } = this.#capture;
    const { name, tags, reference_example_id } = this.#updates;
    Object.assign(this.#copy, {
      name: typeof name === 'string' ? shownName(name, payload) : run.name,
      runType: run.runType,
      tags: Array.isArray(tags) ? withTags(undefined, tags, payload) : run.tags,
      referenceExampleId: textOf(reference_example_id) ?? run.referenceExampleId,
    });
    const { attachments = [] } = run;
    const added = attachments.filter((attachment) => !this.#attachments.includes(attachment));
    if (added.length > 0) this.#copy.attachments = [...(this.#copy.attachments ?? []), ...added];
    this.#attachments = attachments;
    this.#update('inputs');
    this.#update('metadata');
  }

  end(): void {
    const { endTime, endReason, events } = this.#run;
    const { inputs, outputs } = this.#masks;
    const copy = this.#copy;
    copy.source = undefined;
    this.describe();
    this.#update('outputs');
    this.#update('error');
    copy.endTime = endTime;
    copy.endReason = endReason;
    copy.events = events && (inputs || outputs) ? withoutData(events) : events;
    this.#late.whenSettled(() => this.#sink.end(copy));
  }

  #update(field: Field): void {
    const mask = this.#masks[field];
    const given = this.#run[field];
    const value = mask === false ? given : jsonOf(field, field === 'metadata' ? this.#metadata() : given);
    // Copied once, because the exporter removes inputs that the service has accepted.
    if (value === this.#seen[field]) return;
    this.#seen[field] = value;
    if (mask === false) Object.assign(this.#copy, { [field]: field === 'metadata' ? this.#metadata() : value });
    else this.#hide(field);
    if (typeof mask !== 'function' || typeof value !== 'string') return;
    const place = `Client.${OPTIONS[field]}`;
    const keep = (content: unknown): void => {
      // The application may have replaced the value in the meantime.
      if (this.#seen[field] === value) this.#keep(field, content);
    };
    try {
      const result = untraced(mask, parseExact(value, String));
      if (typeof fieldsOf(result).then === 'function') this.#late.add(new LateValue(place, result as never), keep);
      else keep(result);
    } catch {
      reportHidden(place, 'threw');
    }
  }

  /** Returns the metadata of the run with that of the target's updates. */
  #metadata(): EncodedRun['metadata'] {
    const { metadata = this.#updates.extra?.metadata } = this.#updates;
    const own = this.#idOf ? withIdOf(this.#run.metadata, this.#idOf) : this.#run.metadata;
    return isPlainObject(metadata) ? withMetadata(own, metadata, this.#capture.payload) : own;
  }

  #hide(field: Field): void {
    const masked = Array.from(this.#metadata()?.keys() ?? [], (key) => [key, MASK]);
    if (field === 'metadata') this.#keep(field, Object.fromEntries(masked));
    else this.#copy[field] = field === 'error' ? MASK : undefined;
  }

  #keep(field: Field, content: unknown): void {
    const capture = this.#capture;
    const payload = { ...capture.payload, isInline: true } as const;
    if (field === 'metadata') {
      this.#copy.metadata = withMetadata(undefined, fieldsOf(content), payload);
    } else if (field === 'error') {
      const { error } = fieldsOf(content);
      this.#copy.error = typeof error === 'string' ? shownError(error, payload.redaction) : MASK;
    } else {
      this.#copy[field] = encodePayload(field, content, { ...capture, payload }).json;
    }
  }
}

/** Returns where a copy is recorded. Its ids are changed together, so the copies form a trace. */
function placedIn(run: EncodedRun, { project = run.project, idOf }: CopyPlace): Partial<EncodedRun> {
  if (idOf === undefined) return { project };
  const { id, traceId, parentRunId, dottedOrder } = run;
  return {
    project,
    id: idOf(id),
    traceId: idOf(traceId),
    parentRunId: parentRunId && idOf(parentRunId),
    dottedOrder: dottedOrder.replaceAll(/(?<=Z)[^.]+/g, idOf),
  };
}

/** Returns metadata that names the copy of another record of the same call. */
function withIdOf(metadata: EncodedRun['metadata'], idOf: (id: string) => string): EncodedRun['metadata'] {
  const named = metadata?.get(SAME_CALL);
  return named === undefined ? metadata : new Map(metadata).set(SAME_CALL, JSON.stringify(idOf(JSON.parse(named))));
}

/** Returns what a mask function gets, as JSON text. */
function jsonOf(field: Field, value: string | EncodedRun['metadata']): string | undefined {
  if (typeof value !== 'object') return field === 'error' ? value && JSON.stringify({ error: value }) : value;
  return `{${Array.from(value, ([key, json]) => `${JSON.stringify(key)}:${json}`).join(',')}}`;
}

/** Returns the names and times of events. Their data may contain parts of the payloads, for example tokens. */
function withoutData(events: string): string {
  const list = JSON.parse(events) as { name: string; time: string }[];
  return JSON.stringify(list.map(({ name, time }) => ({ name, time })));
}

import type { HeldAttachment } from '../payload/attachment.ts';
import { shownError } from '../payload/errors.ts';
import { fieldsOf } from '../payload/fields.ts';
import type { ValuePath } from '../payload/redaction/paths.ts';
import { MASK, type Redaction, shownText } from '../payload/redaction/redact.ts';
import { encodePayload } from '../payload/serialize.ts';
import { untraced } from '../run/context.ts';
import { describeOpenRun, type EncodedRun, type RunSource, releaseRun } from '../run/encoded-run.ts';
import { withMetadata } from '../run/fields.ts';
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

/** A sink that receives copies of runs. */
export interface Target {
  readonly sink: () => RunSink;
  readonly masks?: Masks;
  /** Returns the fields in which a copy differs, for example its ids. */
  readonly change?: (run: EncodedRun) => Partial<EncodedRun>;
}

/**
 * Returns a sink that passes a copy of each run to each target for which tracing is on. A run is encoded once, with the
 * strictest settings of these targets. A target never sees what a mask has not returned, so no queue, request or file
 * contains it.
 */
export function copyingSink(targets: readonly Target[]): RunSink {
  const active = (): readonly Target[] => targets.filter(({ sink }) => sink().isOff !== true);
  let known: { readonly given: readonly unknown[]; readonly capture: CapturePolicy } | undefined;
  const capture = (): CapturePolicy => {
    const given = targets.map(({ sink }) => (sink().isOff === true ? undefined : sink().capture));
    const isKnown = known?.given.every((one, index) => one === given[index]) === true;
    if (known === undefined || !isKnown) {
      const masked = active().map(({ sink, masks = NO_MASKS }) => maskedCapture(sink().capture, masks));
      known = { given, capture: strictest(masked) };
    }
    return known.capture;
  };
  return {
    get capture() {
      return capture();
    },
    get isOff() {
      return (active().length === 0) as true;
    },
    start(run) {
      const { redaction } = capture().payload;
      const copies = active()
        .map((target) => new RunCopy(run, target, redaction))
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
    urlOf: (run) => active()[0]?.sink().urlOf?.(run),
    flush: (limit) => flushed(targets.map(({ sink }) => sink().flush(limit))),
    close: (limit) => flushed(targets.map(({ sink }) => sink().close(limit))),
  };
}

function maskedCapture(capture: CapturePolicy, masks: Masks): CapturePolicy {
  if (masks === NO_MASKS) return capture;
  return {
    ...capture,
    hideInputs: capture.hideInputs || masks.inputs === true,
    hideOutputs: capture.hideOutputs || masks.outputs === true,
    hidesMetadata: masks.metadata !== false,
    // A function must see binary values and data URIs, and not only the name of an attachment.
    payload: { ...capture.payload, isInline: true },
  };
}

function strictest(captures: readonly CapturePolicy[]): CapturePolicy {
  const [first = noopSink.capture] = captures;
  if (captures.length < 2) return first;
  const { payload } = first;
  const least = (limit: (capture: CapturePolicy) => number): number => Math.min(...captures.map(limit));
  const samplers = captures.flatMap(({ sampling }) => sampling ?? []);
  const isInline = captures.some((it) => it.payload.isInline || it.payload.redaction !== payload.redaction);
  return {
    ...first,
    hideInputs: captures.some((it) => it.hideInputs),
    hideOutputs: captures.some((it) => it.hideOutputs),
    hidesMetadata: captures.some((it) => it.hidesMetadata),
    attachmentBytes: least((it) => it.attachmentBytes),
    sampling: samplers.length === 0 ? undefined : (start) => samplers.every((isSampled) => isSampled(start)),
    payload: {
      ...payload,
      depth: least((it) => it.payload.depth),
      width: least((it) => it.payload.width),
      nodes: least((it) => it.payload.nodes),
      bytes: least((it) => it.payload.bytes),
      ...(isInline && { isInline }),
    },
  };
}

/** Returns masks that also encode the fields that they do not hide. */
function encodedAgain({ inputs, outputs, metadata, error }: Masks): Masks {
  const same: MaskFunction = (values) => values;
  return { inputs: inputs || same, outputs: outputs || same, metadata: metadata || same, error: error || same };
}

/** The copy of a run that one target gets. */
class RunCopy implements RunSource {
  readonly #run: EncodedRun;
  readonly #copy: EncodedRun;
  readonly #sink: RunSink;
  readonly #masks: Masks;
  /** The redaction of the target. Undefined if the run is already encoded with it. */
  readonly #redaction: Redaction | undefined;
  readonly #changes: Partial<EncodedRun>;
  readonly #late = new LateContent();
  /** The value of each field that was copied last, or its JSON text if it was masked. */
  readonly #seen: Partial<Record<Field, unknown>> = {};
  #attachments: readonly HeldAttachment[] = [];

  /** `applied` is the redaction of the run. If the target has another one, the copy is encoded again. */
  constructor(run: EncodedRun, { sink, masks = NO_MASKS, change }: Target, applied: Redaction | undefined) {
    this.#run = run;
    this.#sink = sink();
    const { redaction } = this.#sink.capture.payload;
    this.#redaction = redaction === applied ? undefined : redaction;
    this.#masks = redaction === applied ? masks : encodedAgain(masks);
    this.#changes = change?.(run) ?? {};
    this.#copy = { ...run, ...this.#changes, sinkState: undefined, endTime: undefined, source: this };
    releaseRun(this.#copy);
  }

  start(): boolean {
    return this.#sink.start(this.#copy);
  }

  /** Called before the target sends or stores the open run, so most masks are called once, when the run ends. */
  describe(): void {
    const run = this.#run;
    describeOpenRun(run);
    const { runType, attachments = [], referenceExampleId } = run;
    const shown = (text: string, path: ValuePath): string => shownText(text, this.#redaction, path);
    const name = shown(run.name, ['name']);
    const tags = run.tags?.map((tag) => shown(tag, ['tags', undefined]));
    Object.assign(this.#copy, { name, runType, tags, referenceExampleId }, this.#changes);
    // An attachment whose name must be masked is left out.
    const isShown = ({ name }: HeldAttachment): boolean => shown(name, ['attachments', undefined]) === name;
    const added = attachments.filter((attachment) => !this.#attachments.includes(attachment) && isShown(attachment));
    if (added.length > 0) this.#copy.attachments = [...(this.#copy.attachments ?? []), ...added];
    this.#attachments = attachments;
    this.#update('inputs');
    this.#update('metadata');
  }

  end(): void {
    const { endTime, events } = this.#run;
    const { inputs, outputs } = this.#masks;
    const copy = this.#copy;
    copy.source = undefined;
    this.describe();
    this.#update('outputs');
    this.#update('error');
    copy.endTime = endTime;
    copy.events = events && (inputs || outputs) ? withoutData(events, this.#redaction) : events;
    this.#late.whenSettled(() => this.#sink.end(copy));
  }

  #update(field: Field): void {
    const mask = this.#masks[field];
    const value = mask === false ? this.#run[field] : jsonOf(this.#run, field);
    // Copied once, because the exporter removes inputs that the service has accepted.
    if (value === this.#seen[field]) return;
    this.#seen[field] = value;
    if (mask === false) Object.assign(this.#copy, { [field]: value });
    else this.#hide(field);
    if (typeof mask !== 'function' || typeof value !== 'string') return;
    const place = `Client.${OPTIONS[field]}`;
    const keep = (content: unknown): void => {
      // The application may have replaced the value in the meantime.
      if (this.#seen[field] === value) this.#keep(field, content);
    };
    try {
      const result = untraced(mask, JSON.parse(value));
      if (typeof fieldsOf(result).then === 'function') this.#late.add(new LateValue(place, result as never), keep);
      else keep(result);
    } catch {
      reportHidden(place, 'threw');
    }
  }

  #hide(field: Field): void {
    const masked = Array.from(this.#run.metadata?.keys() ?? [], (key) => [key, MASK]);
    if (field === 'metadata') this.#keep(field, Object.fromEntries(masked));
    else this.#copy[field] = field === 'error' ? MASK : undefined;
  }

  #keep(field: Field, content: unknown): void {
    const { capture } = this.#sink;
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

/** Returns what a mask function gets, as JSON text. */
function jsonOf(run: EncodedRun, field: Field): string | undefined {
  if (field === 'error') return run.error && JSON.stringify({ error: run.error });
  if (field !== 'metadata') return run[field];
  const entries = Array.from(run.metadata ?? [], ([key, json]) => `${JSON.stringify(key)}:${json}`);
  return run.metadata && `{${entries.join(',')}}`;
}

/** Returns the names and times of events. Their data may contain parts of the payloads, for example tokens. */
function withoutData(events: string, redaction: Redaction | undefined): string {
  const list = JSON.parse(events) as { name: string; time: string }[];
  const shown = (name: string): string => shownText(name, redaction, ['events', undefined, 'name']);
  return JSON.stringify(list.map(({ name, time }) => ({ name: shown(name), time })));
}

import type { HeldAttachment } from '../payload/attachment.ts';
import { shownError } from '../payload/errors.ts';
import { fieldsOf } from '../payload/fields.ts';
import { MASK } from '../payload/redaction/redact.ts';
import { encodePayload } from '../payload/serialize.ts';
import { untraced } from '../run/context.ts';
import { describeOpenRun, EncodedRun, type RunSource, releaseRun } from '../run/encoded-run.ts';
import { withMetadata } from '../run/fields.ts';
import { LateContent, LateValue, reportHidden } from '../run/late-content.ts';
import type { CapturePolicy, RunSink } from '../run/sink.ts';
import type { KVMap } from './types.ts';

/** A function of the application that returns what to record instead of a value. */
export type MaskFunction = (values: KVMap) => unknown;

/** What a client hides: `true` hides a field, and a function changes it. */
export type Masks = Readonly<Record<Field, boolean | MaskFunction>>;

type Field = 'inputs' | 'outputs' | 'metadata' | 'error';

/** The options of `Client`, for log lines. */
const OPTIONS: Readonly<Record<Field, string>> = {
  inputs: 'hideInputs',
  outputs: 'hideOutputs',
  metadata: 'hideMetadata',
  error: 'anonymizer',
};

/**
 * Returns a sink that passes masked copies of runs to `target`. The target never sees what a mask has not returned, so
 * no queue, request or file contains it.
 */
export function maskingSink(target: () => RunSink, masks: Masks): RunSink {
  const captures = new WeakMap<CapturePolicy, CapturePolicy>();
  return {
    get capture() {
      const { capture } = target();
      const masked = captures.get(capture) ?? maskedCapture(capture, masks);
      captures.set(capture, masked);
      return masked;
    },
    get isOff() {
      return target().isOff as true;
    },
    start(run) {
      const masked = new MaskedRun(run, target(), masks);
      run.sinkState = masked;
      return masked.start();
    },
    end: (run) => (run.sinkState as MaskedRun).end(),
    skip: () => target().skip(),
    urlOf: (run) => target().urlOf?.(run),
    flush: (limit) => target().flush(limit),
    close: (limit) => target().close(limit),
  };
}

function maskedCapture(capture: CapturePolicy, { inputs, outputs, metadata }: Masks): CapturePolicy {
  return {
    ...capture,
    hideInputs: capture.hideInputs || inputs === true,
    hideOutputs: capture.hideOutputs || outputs === true,
    hidesMetadata: metadata !== false,
    // A function must see binary values and data URIs, and not only the name of an attachment.
    payload: { ...capture.payload, isInline: true },
  };
}

/** A run in two records: the application's, and the masked copy that the exporter gets. */
class MaskedRun implements RunSource {
  readonly #run: EncodedRun;
  readonly #shown: EncodedRun;
  readonly #sink: RunSink;
  readonly #masks: Masks;
  readonly #late = new LateContent();
  /** The value of each field that was copied last, or its JSON text if it was masked. */
  readonly #seen: Partial<Record<Field, unknown>> = {};
  #attachments: readonly HeldAttachment[] = [];

  constructor(run: EncodedRun, sink: RunSink, masks: Masks) {
    this.#run = run;
    this.#shown = Object.assign(Object.create(EncodedRun.prototype), run, { sinkState: undefined, endTime: undefined });
    releaseRun(this.#shown);
    this.#shown.source = this;
    this.#sink = sink;
    this.#masks = masks;
  }

  start(): boolean {
    return this.#sink.start(this.#shown);
  }

  /** Called before the exporter sends or stores the open run, so most masks are called once, when the run ends. */
  describe(): void {
    const run = this.#run;
    describeOpenRun(run);
    const { name, runType, tags, attachments = [], referenceExampleId } = run;
    Object.assign(this.#shown, { name, runType, tags, referenceExampleId });
    const added = attachments.filter((attachment) => !this.#attachments.includes(attachment));
    if (added.length > 0) this.#shown.attachments = [...(this.#shown.attachments ?? []), ...added];
    this.#attachments = attachments;
    this.#mask('inputs');
    this.#mask('metadata');
  }

  end(): void {
    const { endTime, events } = this.#run;
    const shown = this.#shown;
    shown.source = undefined;
    this.describe();
    this.#mask('outputs');
    this.#mask('error');
    shown.endTime = endTime;
    shown.events = events && this.#isHiding ? withoutData(events) : events;
    releaseRun(this.#run);
    this.#late.whenSettled(() => this.#sink.end(shown));
  }

  get #isHiding(): boolean {
    return this.#masks.inputs !== false || this.#masks.outputs !== false;
  }

  #mask(field: Field): void {
    const mask = this.#masks[field];
    const text = mask === false ? this.#run[field] : textOf(this.#run, field);
    // Copied once, because the exporter removes inputs that the service has accepted.
    if (text === this.#seen[field]) return;
    this.#seen[field] = text;
    if (mask === false) Object.assign(this.#shown, { [field]: text });
    else this.#keep(field, undefined);
    if (typeof mask !== 'function' || typeof text !== 'string') return;
    const place = `Client.${OPTIONS[field]}`;
    try {
      const result = untraced(mask, JSON.parse(text));
      const keep = (content: unknown): void => {
        // The application may have replaced the value in the meantime.
        if (this.#seen[field] === text) this.#keep(field, content, place);
      };
      if (isThenable(result)) this.#late.add(new LateValue(place, result), keep);
      else keep(result);
    } catch {
      reportHidden(place, 'threw');
    }
  }

  /** Records what a mask has returned. Without a place, hides the value. */
  #keep(field: Field, content: unknown, place?: string): void {
    const shown = this.#shown;
    const { capture } = this.#sink;
    const { payload } = capture;
    if (field === 'metadata') {
      const hidden = Object.fromEntries(Array.from(this.#run.metadata?.keys() ?? [], (key) => [key, MASK]));
      shown.metadata = withMetadata(undefined, place === undefined ? hidden : fieldsOf(content), payload);
    } else if (field === 'error') {
      const { error } = fieldsOf(content);
      shown.error = typeof error === 'string' ? shownError(error, payload.redaction) : MASK;
    } else {
      const policy = { ...capture, payload: { ...payload, isInline: true } as const };
      shown[field] = place === undefined ? undefined : encodePayload(field, content, policy).json;
    }
  }
}

function textOf(run: EncodedRun, field: Field): string | undefined {
  if (field === 'error') return run.error && JSON.stringify({ error: run.error });
  if (field !== 'metadata') return run[field];
  const entries = Array.from(run.metadata ?? [], ([key, json]) => `${JSON.stringify(key)}:${json}`);
  return run.metadata && `{${entries.join(',')}}`;
}

/** Returns the names and times of events. Their data may contain parts of the payloads, for example tokens. */
function withoutData(events: string): string {
  const list = JSON.parse(events) as KVMap[];
  return JSON.stringify(list.map(({ name, time }) => ({ name, time })));
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof fieldsOf(value).then === 'function';
}

import { RunspanError } from '../base/errors.ts';
import { defaultLimits, type Limits } from '../base/limits.ts';
import { type Check, type Checks, checkedOptions, WHOLE_FROM_1 } from '../base/options.ts';
import type { HeldAttachment } from '../payload/attachment.ts';
import { payloadRules } from '../payload/limits.ts';
import { defaultRedaction, Redaction } from '../payload/redact.ts';
import { type EncodedRun, wholeJson } from '../run/encoded-run.ts';
import type { RunRecord } from '../run/record.ts';
import { type CapturePolicy, type FlushLimit, type FlushResult, overrideSink, type RunSink } from '../run/sink.ts';
import { recordedText } from './outline.ts';

/** Options of `recordRuns`, with the meaning that they have in `configure`. Without any, runs are recorded whole. */
export interface RecordOptions {
  /** The project of runs that name none. @default 'default' */
  project?: string;
  /** Records no inputs. @default false */
  hideInputs?: boolean;
  /** Records no outputs. @default false */
  hideOutputs?: boolean;
  /** What is hidden of the runs: what `redact` gives. @default values under names such as `authorization` */
  redact?: Redaction;
  /** The limits of what is recorded of a run; the others are about delivery. @default those of `configure` */
  limits?: Partial<CaptureLimits>;
}

export type CaptureLimits = Pick<
  Limits,
  'payloadDepth' | 'payloadWidth' | 'payloadNodes' | 'payloadBytes' | 'attachmentBytes'
>;

/** A run with what travels beside it. */
export interface RecordedRun extends RunRecord {
  /** Absent when the run has none. */
  attachments?: HeldAttachment[];
}

/** What `recordRuns` gives. */
export interface RunRecorder {
  /** Every run recorded so far, as the service would get it, parents before children; open ones have no `end_time`. */
  readonly runs: RecordedRun[];
  /** The run of this name. A RunspanError, `RUNSPAN_RUN_NOT_FOUND`, when there is none or more than one. */
  run(name: string): RecordedRun;
  /** Pass it as `exporter` to record only what is given it. */
  readonly exporter: RunSink;
  /** Forgets the runs so far. */
  clear(): void;
  /** Puts tracing back to what it was. */
  stop(): void;
  /** The same, when a `using` block is left. */
  [Symbol.dispose](): void;
}

const FLAG: Check = ['true or false', (value) => typeof value === 'boolean'];

const CHECKS: Checks<RecordOptions> = {
  project: ['text', (value) => typeof value === 'string' && value !== ''],
  hideInputs: FLAG,
  hideOutputs: FLAG,
  redact: ['what redact() gives', (value) => value instanceof Redaction],
  limits: ['an object', (value) => typeof value === 'object' && value !== null],
};

const LIMIT_CHECKS: Checks<CaptureLimits> = {
  payloadDepth: WHOLE_FROM_1,
  payloadWidth: WHOLE_FROM_1,
  payloadNodes: WHOLE_FROM_1,
  payloadBytes: WHOLE_FROM_1,
  attachmentBytes: WHOLE_FROM_1,
};

/**
 * Records the runs of this process in memory, instead of sending them, until it is stopped: for tests of code that is
 * traced. Nothing leaves the process, and no endpoint is needed. Options that do not hold are refused with a RunspanError.
 */
export function recordRuns(options: RecordOptions = {}): RunRecorder {
  const sink = new MemorySink(capturePolicy(options));
  const stop = overrideSink(sink);
  return {
    get runs() {
      return sink.runs();
    },
    run: (name) => onlyRun(sink.runs(), name),
    exporter: sink,
    clear: () => sink.clear(),
    stop,
    [Symbol.dispose]: stop,
  };
}

function capturePolicy(given: RecordOptions): CapturePolicy {
  const options = checkedOptions('the options', given, CHECKS);
  const limits = { ...defaultLimits, ...checkedOptions('`limits`', options.limits ?? {}, LIMIT_CHECKS) };
  return {
    project: options.project ?? 'default',
    hideInputs: options.hideInputs ?? false,
    hideOutputs: options.hideOutputs ?? false,
    payload: payloadRules(limits, options.redact ?? defaultRedaction()),
    attachmentBytes: limits.attachmentBytes,
    sampling: undefined,
    streamIdleMs: limits.streamIdleMs,
  };
}

function onlyRun(runs: readonly RecordedRun[], name: string): RecordedRun {
  const [run, ...others] = runs.filter((each) => each.name === name);
  if (run !== undefined && others.length === 0) return run;
  const count = run === undefined ? 'none' : `${others.length + 1}`;
  throw new RunspanError(
    'RUNSPAN_RUN_NOT_FOUND',
    `Expected one run named ${JSON.stringify(name)}, got ${count}\n\n${recordedText(runs)}`,
  );
}

class MemorySink implements RunSink {
  readonly capture: CapturePolicy;
  #runs: EncodedRun[] = [];

  constructor(capture: CapturePolicy) {
    this.capture = capture;
  }

  start(run: EncodedRun): boolean {
    if (!run.refused) this.#runs.push(run);
    return !run.refused;
  }

  end(): void {}

  skip(): void {}

  async flush(_limit?: FlushLimit): Promise<FlushResult> {
    return { ok: true, pending: 0 };
  }

  close(limit?: FlushLimit): Promise<FlushResult> {
    return this.flush(limit);
  }

  clear(): void {
    this.#runs = [];
  }

  runs(): RecordedRun[] {
    return this.#runs.map(recordOf).sort((a, b) => (a.dotted_order < b.dotted_order ? -1 : 1));
  }
}

function recordOf(run: EncodedRun): RecordedRun {
  const record: RecordedRun = JSON.parse(wholeJson(run));
  if (run.attachments !== undefined) record.attachments = run.attachments.map((attachment) => ({ ...attachment }));
  return record;
}

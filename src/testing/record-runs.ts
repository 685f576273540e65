import { RunspanError } from '../base/errors.ts';
import {
  type Checks,
  checkedOptions,
  matcherOf,
  NAMES_TO_KEEP,
  TRUE_OR_FALSE,
  WHOLE_FROM_1,
} from '../config/checker.ts';
import { defaultLimits, type Limits } from '../config/limits.ts';
import type { WaitingAttachment } from '../payload/attachment.ts';
import { defaultRedaction, Redaction } from '../payload/redaction/redact.ts';
import { payloadRules } from '../payload/truncate.ts';
import { type EncodedRun, recordOf } from '../run/encoded-run.ts';
import type { RunRecord } from '../run/record.ts';
import { copiedProject, projectCheck } from '../run/run-options.ts';
import { type CapturePolicy, noopSink, overrideSink, type RunSink } from '../run/sink.ts';
import { recordedText } from './snapshot.ts';

/**
 * Options of `recordRuns`, which have the same meaning as in `configure`. By default, inputs and outputs are recorded.
 */
export interface RecordOptions {
  /** Project of runs that do not set a project: its name, or `{ id }`. @default 'default' */
  project?: string | { readonly id: string };
  /** Whether to omit inputs from recorded runs. @default false */
  hideInputs?: boolean;
  /** Whether to omit outputs from recorded runs. @default false */
  hideOutputs?: boolean;
  /** Names of attributes of spans to record although inputs or outputs are omitted. @default [] */
  keepAttributes?: readonly string[];
  /** Redaction rules, created by `redact`. @default masks values under names such as `authorization` */
  redact?: Redaction;
  /** Size limits of payloads and attachments. @default the limits of `configure` */
  limits?: Partial<CaptureLimits>;
}

/** Limits of recorded payloads and attachments. */
export type CaptureLimits = Pick<Limits, 'payloadCharacters' | 'attachmentBytes'>;

/** A recorded run, including attachments. */
export interface RecordedRun extends RunRecord {
  attachments?: WaitingAttachment[];
}

/** The result of `recordRuns`. */
export interface RunRecorder {
  /**
   * Recorded runs, in the format that a service receives. Parents come before their children. Open runs have no
   * `end_time`.
   */
  readonly runs: RecordedRun[];
  /** Returns the run with this name. Throws `RUNSPAN_RUN_NOT_FOUND` unless exactly one run has the name. */
  run(name: string): RecordedRun;
  /** The sink of the recorder. To record only selected runs, pass it as the `exporter` option of these runs. */
  readonly exporter: RunSink;
  /** Removes the recorded runs. */
  clear(): void;
  /** Stops recording and restores the previous tracing configuration. */
  stop(): void;
  /** Calls `stop` when a `using` block ends. */
  [Symbol.dispose](): void;
}

const CHECKS: Checks<RecordOptions> = {
  project: projectCheck,
  hideInputs: TRUE_OR_FALSE,
  hideOutputs: TRUE_OR_FALSE,
  keepAttributes: NAMES_TO_KEEP,
  redact: ['the result of redact()', (value) => value instanceof Redaction],
  limits: ['an object', (value) => typeof value === 'object' && value !== null],
};

const LIMIT_CHECKS: Checks<CaptureLimits> = { payloadCharacters: WHOLE_FROM_1, attachmentBytes: WHOLE_FROM_1 };

/**
 * Records the runs of this process in memory until `stop` is called. Use `recordRuns` to test traced code. Nothing is
 * sent, and no endpoint is needed. Throws a RunspanError if an option is invalid.
 */
export function recordRuns(options: RecordOptions = {}): RunRecorder {
  const runs: EncodedRun[] = [];
  const sink = sinkInto(runs, capturePolicy(options));
  const stop = overrideSink(sink);
  return {
    get runs() {
      return recordsOf(runs);
    },
    run: (name) => onlyRun(recordsOf(runs), name),
    exporter: sink,
    clear: () => void runs.splice(0),
    stop,
    [Symbol.dispose]: stop,
  };
}

function capturePolicy(given: RecordOptions): CapturePolicy {
  const options = checkedOptions('the options', given, CHECKS);
  const limits = { ...defaultLimits, ...checkedOptions('`limits`', options.limits ?? {}, LIMIT_CHECKS) };
  const payload = payloadRules(limits, options.redact ?? defaultRedaction());
  return {
    project: copiedProject(options.project) ?? 'default',
    hideInputs: options.hideInputs ?? false,
    hideOutputs: options.hideOutputs ?? false,
    isKept: options.keepAttributes && matcherOf(options.keepAttributes),
    payload,
    attachmentBytes: limits.attachmentBytes,
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

/** Returns a sink that adds the runs to a list when they start. */
function sinkInto(runs: EncodedRun[], capture: CapturePolicy): RunSink {
  const { isOff: _, ...sink } = noopSink;
  return {
    ...sink,
    capture,
    start(run) {
      if (!run.refused) runs.push(run);
      return !run.refused;
    },
  };
}

/** Returns the records of runs, parents before children. */
function recordsOf(runs: readonly EncodedRun[]): RecordedRun[] {
  return runs.map(recordedRun).sort((a, b) => (a.dotted_order < b.dotted_order ? -1 : 1));
}

function recordedRun(run: EncodedRun): RecordedRun {
  const record: RecordedRun = recordOf(run);
  if (run.attachments !== undefined) record.attachments = run.attachments.map((attachment) => ({ ...attachment }));
  return record;
}

import type { PayloadLimits } from '#src/payload/plain.ts';
import { type EncodedRun, wholeJson } from '#src/run/encoded-run.ts';
import type { RunRecord } from '#src/run/record.ts';
import type { RunOptions } from '#src/run/run-options.ts';
import type { CapturePolicy, RunSink } from '#src/run/sink.ts';
import { startRun } from '#src/run/start-run.ts';

export const LIMITS: PayloadLimits = { depth: 64, width: 10_000, nodes: 100_000, bytes: 10_485_760 };

export interface MemorySink extends RunSink {
  readonly started: EncodedRun[];
  readonly ended: EncodedRun[];
  /** Number of runs that sampling has left out. */
  skipped: number;
  /** Returns the runs as the service would receive them now. */
  records(): RunRecord[];
}

/** Records its calls. Refuses the runs that `refuses` selects, and never records runs below a refused run. */
export function makeSink(
  capture: Partial<CapturePolicy> = {},
  refuses = (_: EncodedRun): boolean => false,
): MemorySink {
  const started: EncodedRun[] = [];
  const ended: EncodedRun[] = [];
  return {
    capture: {
      project: 'default',
      hideInputs: false,
      hideOutputs: false,
      payload: LIMITS,
      attachmentBytes: 1_000_000,
      ...capture,
    },
    started,
    ended,
    skipped: 0,
    records: () => started.map((run) => JSON.parse(wholeJson(run)) as RunRecord),
    start(run) {
      if (run.refused || refuses(run)) return false;
      started.push(run);
      return true;
    },
    end: (run) => void ended.push(run),
    skip() {
      this.skipped++;
    },
    flush: async () => ({ ok: true, pending: 0 }),
    close: async () => ({ ok: true, pending: 0 }),
  };
}

export function makeRun(options: Partial<RunOptions> = {}, capture: Partial<CapturePolicy> = {}) {
  const sink = makeSink(capture);
  const run = startRun({ name: 'work', exporter: sink, ...options });
  return { run, sink, record: () => sink.records()[0] };
}

export function watched() {
  let reads = 0;
  return {
    object: {
      get secret() {
        return ++reads;
      },
    },
    reads: () => reads,
  };
}

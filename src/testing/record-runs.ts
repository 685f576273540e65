import { defaultLimits } from '../base/limits.ts';
import { type EncodedRun, wholeJson } from '../run/encoded-run.ts';
import type { RunRecord } from '../run/record.ts';
import { payloadLimits } from '../run/serialize.ts';
import { type FlushLimit, type FlushResult, type RunSink, standIn } from '../run/sink.ts';

/** What `recordRuns` gives. */
export interface RunRecorder {
  /** Every run recorded so far, as the service would get it, parents before children; open ones have no `end_time`. */
  readonly runs: RunRecord[];
  /** Pass it as `exporter` to record only what is given it. */
  readonly exporter: RunSink;
  /** Forgets the runs so far. */
  clear(): void;
  /** Puts tracing back to what it was. */
  stop(): void;
  /** The same, when a `using` block is left. */
  [Symbol.dispose](): void;
}

/**
 * Records the runs of this process in memory, instead of sending them, until it is stopped: for tests of code that is
 * traced. Nothing leaves the process, and no endpoint is needed.
 */
export function recordRuns(): RunRecorder {
  const sink = new MemorySink();
  const stop = standIn(sink);
  return {
    get runs() {
      return sink.runs();
    },
    exporter: sink,
    clear: () => sink.clear(),
    stop,
    [Symbol.dispose]: stop,
  };
}

class MemorySink implements RunSink {
  readonly capture: RunSink['capture'] = {
    project: 'default',
    hideInputs: false,
    hideOutputs: false,
    payload: payloadLimits(defaultLimits),
    attachmentBytes: defaultLimits.attachmentBytes,
    sampling: undefined,
    streamIdleMs: defaultLimits.streamIdleMs,
  };
  #runs: EncodedRun[] = [];

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

  runs(): RunRecord[] {
    const records = this.#runs.map((run) => JSON.parse(wholeJson(run)) as RunRecord);
    return records.sort((a, b) => (a.dotted_order < b.dotted_order ? -1 : 1));
  }
}

import { defaultLimits } from '../base/limits.ts';
import { payloadRules } from '../payload/limits.ts';
import { defaultRedaction } from '../payload/redact.ts';
import { type EncodedRun, isFilled, mainJson } from '../run/encoded-run.ts';
import type { Attachment, RunRecord } from '../run/record.ts';
import type { CapturePolicy, FlushResult, RunSink } from '../run/sink.ts';
import type { SpanLike } from './span-like.ts';
import { SpanRun } from './span-run.ts';

/** The run that a span of another process is: the same as if that process had a `RunSpanProcessor` with its defaults. */
export interface FinishedRun {
  /** Without payloads, and with the place of a run that stands alone. */
  readonly record: Omit<RunRecord, 'inputs' | 'outputs' | 'events'>;
  /** JSON text of the payloads that have something in them. */
  readonly texts: { inputs?: string; outputs?: string; events?: string };
  readonly attachments: readonly Attachment[];
}

const CAPTURE: Omit<CapturePolicy, 'project'> = {
  hideInputs: false,
  hideOutputs: false,
  payload: payloadRules(defaultLimits, defaultRedaction()),
  attachmentBytes: defaultLimits.attachmentBytes,
  sampling: undefined,
  streamIdleMs: defaultLimits.streamIdleMs,
};

/** Makes a run of a span, in `project` if the span names none. One that has not ended yet has the start alone. */
export function finishedRun(span: SpanLike, project: string, hasEnded: boolean): FinishedRun | undefined {
  const sink = new OneRunSink(project);
  const start = { ids: span.spanContext(), parentIds: span.parentSpanContext, parent: undefined, sink, project };
  const spanRun = new SpanRun(span, start);
  if (hasEnded) spanRun.end(span);
  return sink.run && told(sink.run, hasEnded);
}

function told(run: EncodedRun, hasEnded: boolean): FinishedRun {
  const record = JSON.parse(mainJson(run, hasEnded)) as RunRecord;
  // That of this process says nothing of the one that the span comes from.
  delete record.extra?.runtime;
  const { inputs, outputs, events } = run;
  return {
    record,
    texts: {
      ...(isFilled(inputs) && { inputs }),
      ...(isFilled(outputs) && { outputs }),
      ...(isFilled(events) && { events }),
    },
    // Of a span they are made of data URIs and bytes, never of a Blob.
    attachments: (run.attachments ?? []).flatMap(({ bytes, ...rest }) =>
      bytes instanceof Uint8Array ? [{ ...rest, bytes }] : [],
    ),
  };
}

/** Holds the one run that it is told of. */
class OneRunSink implements RunSink {
  readonly capture: CapturePolicy;
  run: EncodedRun | undefined;

  constructor(project: string) {
    this.capture = { ...CAPTURE, project };
  }

  start(run: EncodedRun): boolean {
    this.run = run;
    return true;
  }

  end(): void {}

  skip(): void {}

  async flush(): Promise<FlushResult> {
    return { ok: true, pending: 0 };
  }

  close(): Promise<FlushResult> {
    return this.flush();
  }
}

import { RunspanError } from '../base/errors.ts';
import type { CallFacts } from './api-error.ts';
import type { RunPlace } from './run-failed-error.ts';

/** An event, as it is told of. */
export interface LastEvent {
  readonly name: string;
  readonly id: string | undefined;
}

/** What a stream had come to when it broke. */
export interface StreamBreak extends RunPlace {
  /** The last event that came; undefined where none did. */
  readonly lastEvent: LastEvent | undefined;
  /** Why. */
  readonly problem: string;
  /** Why it does not go on. */
  readonly outlook: string;
}

/**
 * A stream, or an answer that is waited for, ended before its run did, and did not go on. The run may be under way all the same:
 * `runs.get` and `runs.join` tell by `runId`.
 */
export class StreamError extends RunspanError {
  override readonly name: string = 'StreamError';
  readonly runId: string | undefined;
  readonly threadId: string | undefined;
  readonly lastEvent: LastEvent | undefined;
  readonly request: CallFacts;

  constructor(request: CallFacts, broken: StreamBreak, options?: ErrorOptions) {
    const { runId, threadId, lastEvent, problem, outlook } = broken;
    const id = lastEvent?.id === undefined ? '' : ` (id ${lastEvent.id})`;
    const after = lastEvent === undefined ? 'before any event' : `after the event "${lastEvent.name}"${id}`;
    const run = runId === undefined ? '' : ` of run ${runId}`;
    super(
      'RUNSPAN_STREAM_BROKEN',
      `[${request.method}] "${request.url}": the stream broke ${after}${run}: ${problem}; ${outlook}`,
      options,
    );
    this.runId = runId;
    this.threadId = threadId;
    this.lastEvent = lastEvent;
    this.request = request;
  }
}

import { RunspanError } from '../../base/errors.ts';
import { shareInstances } from '../../base/shared.ts';
import { cut } from '../../base/text.ts';
import { type CallFacts, DETAIL_MAX, requestText } from '../errors.ts';
import type { RunError } from './streams/agent-event.ts';

/** Ids of a run and its thread, if known. */
export interface RunPlace {
  readonly runId: string | undefined;
  readonly threadId: string | undefined;
}

/** Thrown when an agent's run fails and the server reports the error. */
export class RunFailedError extends RunspanError {
  override readonly name: string = 'RunFailedError';
  readonly runId: string | undefined;
  readonly threadId: string | undefined;
  /** Name of the error that the graph raised, for example `ValueError`. */
  readonly error: string | undefined;
  readonly detail: string | undefined;

  constructor({ runId, threadId }: RunPlace, reported: RunError, masked: (text: string) => string) {
    const error = textOf(reported.error, masked);
    const detail = textOf(reported.message, masked);
    const explanation = [error, detail].filter((text) => text !== undefined).join(': ');
    const run = runId === undefined ? 'The run' : `The run ${runId}`;
    super('RUNSPAN_RUN_FAILED', `${run} failed${explanation && `: ${cut(explanation, DETAIL_MAX)}`}`);
    this.runId = runId;
    this.threadId = threadId;
    this.error = error;
    this.detail = detail;
  }
}

function textOf(value: unknown, masked: (text: string) => string): string | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  return masked(typeof value === 'string' ? value : JSON.stringify(value));
}

/** Name and id of the last event before an error. */
export interface LastEvent {
  readonly name: string;
  readonly id: string | undefined;
}

/** Details of a broken stream. */
export interface StreamBreak extends RunPlace {
  /** The last event read, or undefined if the stream broke before the first event. */
  readonly lastEvent: LastEvent | undefined;
  /** Why the stream broke. */
  readonly problem: string;
  /** Why the stream cannot continue. */
  readonly outlook: string;
}

/**
 * Thrown when the connection breaks before the run ends and the client cannot resume reading. The run may still be
 * running on the server. To check the run, pass the error's `runId` to `runs.get` or `runs.join`.
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
    const message = `${requestText(request)}: the stream broke ${after}${run}: ${problem}; ${outlook}`;
    super('RUNSPAN_STREAM_BROKEN', message, options);
    this.runId = runId;
    this.threadId = threadId;
    this.lastEvent = lastEvent;
    this.request = request;
  }
}

shareInstances({ RunFailedError, StreamError });

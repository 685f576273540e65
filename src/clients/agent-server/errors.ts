import { RunspanError } from '../../base/errors.ts';
import { shareInstances } from '../../base/shared.ts';
import { cut } from '../../base/text.ts';
import { isObject } from '../../config/checker.ts';
import { ApiError, type CallFacts, DETAIL_MAX, requestText } from '../errors.ts';
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

/** Why the server refused a command. */
export type CommandErrorReason =
  | 'invalid_argument'
  | 'unknown_command'
  | 'unknown_error'
  | 'no_such_run'
  | 'no_such_subscription'
  | 'no_such_namespace'
  | 'no_such_interrupt'
  | 'no_such_checkpoint'
  | 'permission_denied'
  | 'not_supported'
  | (string & {});

/**
 * Thrown when the server refuses a command with an error of the agent streaming protocol. A refused command has no
 * effect.
 */
export class CommandError extends RunspanError {
  override readonly name: string = 'CommandError';
  readonly reason: CommandErrorReason;
  /** The server's explanation, if the response contains one. */
  readonly detail: string | undefined;
  /** Name of the command, for example `run.start`. */
  readonly command: string;
  readonly request: CallFacts;

  private constructor(command: string, { request, reason, detail }: Refusal, options?: ErrorOptions) {
    const explanation = detail === undefined ? '' : `: ${cut(detail, DETAIL_MAX)}`;
    const problem = `the command ${command} was refused (${cut(reason, DETAIL_MAX)})${explanation}`;
    super('RUNSPAN_COMMAND_REFUSED', `${requestText(request)}: ${problem}`, options);
    this.reason = reason;
    this.detail = detail;
    this.command = command;
    this.request = request;
  }

  /** @internal Creates a CommandError from a response body. Returns undefined if the body is not a protocol error. */
  static of(
    command: string,
    body: unknown,
    request: CallFacts,
    masked = (text: string): string => text,
    options?: ErrorOptions,
  ): CommandError | undefined {
    if (!isObject(body) || body.type !== 'error' || typeof body.error !== 'string') return undefined;
    const detail = typeof body.message === 'string' && body.message !== '' ? masked(body.message) : undefined;
    return new CommandError(command, { request, reason: masked(body.error), detail }, options);
  }

  /** @internal Converts an error response to a CommandError. Returns any other error unchanged. */
  static ofStatus(command: string, thrown: unknown): unknown {
    if (!(thrown instanceof ApiError) || thrown.status >= 500 || thrown.status === 429) return thrown;
    return CommandError.of(command, thrown.body, thrown.request, undefined, { cause: thrown }) ?? thrown;
  }
}

shareInstances({ RunFailedError, StreamError, CommandError });

type Refusal = Pick<CommandError, 'request' | 'reason' | 'detail'>;

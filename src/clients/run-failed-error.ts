import { RunspanError } from '../base/errors.ts';
import { cut } from '../base/text.ts';
import type { RunError } from './agent-event.ts';

/** Characters of what the server says that are in a message. */
const MESSAGE_MAX = 500;

/** A run of an agent server and its thread, as far as they are known. */
export interface RunPlace {
  readonly runId: string | undefined;
  readonly threadId: string | undefined;
}

/** The run of an agent has ended with an error, of which the server tells. */
export class RunFailedError extends RunspanError {
  override readonly name: string = 'RunFailedError';
  readonly runId: string | undefined;
  readonly threadId: string | undefined;
  /** The name of the error in the graph: `ValueError`. */
  readonly error: string | undefined;
  /** What it says. */
  readonly detail: string | undefined;

  constructor({ runId, threadId }: RunPlace, told: RunError, masked: (text: string) => string) {
    const error = textOf(told.error, masked);
    const detail = textOf(told.message, masked);
    const said = [error, detail].filter((text) => text !== undefined).join(': ');
    const run = runId === undefined ? 'The run' : `The run ${runId}`;
    super('RUNSPAN_RUN_FAILED', said === '' ? `${run} failed` : `${run} failed: ${cut(said, MESSAGE_MAX)}`);
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

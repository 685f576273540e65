import { fieldsOf, listOf } from '../../payload/fields.ts';

/** What an assistant's function receives besides its input. */
export interface AssistantRun {
  readonly runId: string;
  /** The thread of the run. */
  readonly thread: AssistantThread;
  /** Aborts when the run is cancelled. */
  readonly signal: AbortSignal;
  /** Sends an event to the streams of the run, for example `emit('custom', { progress: 0.5 })`. */
  readonly emit: (event: string, data: unknown) => void;
  /**
   * Asks a person. The first call ends the run with the status `interrupted`. After a request with `command.resume`,
   * the function is called again, and the call returns the answer.
   */
  readonly interrupt: (question: unknown) => unknown;
}

/** A thread, as an assistant sees it. */
export interface AssistantThread {
  readonly id: string;
  /** Values of the thread before the run. */
  readonly values: Readonly<Record<string, unknown>>;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/**
 * What an assistant does. Each yielded object is an update of the thread's values, and its `messages` are appended to
 * those of the thread. A thrown error fails the run.
 */
export type AssistantFunction = (input: unknown, run: AssistantRun) => AsyncIterable<object>;

/** The assistant of a platform without `assistants`. */
export const repeatLastMessage: AssistantFunction = async function* (input) {
  const last = fieldsOf(listOf(fieldsOf(input).messages).at(-1));
  yield { messages: [{ type: 'ai', content: last.content ?? 'Hello.' }] };
};

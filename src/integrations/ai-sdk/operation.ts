import { shared } from '../../base/shared.ts';
import { observedStream } from '../../instrument/results/observed-stream.ts';
import { noObserver, replaceOwn } from '../../instrument/results/observer.ts';
import { setSoon } from '../../platform/timers.ts';
import type { CallDescription, Run } from '../../run/run.ts';
import { currentRun } from '../../run/start-run.ts';
import { AnswerStream } from '../answer-stream.ts';
import { modelReader, operationReader } from './answer.ts';

interface Operation {
  /** The options `recordInputs` and `recordOutputs`, which also apply to the operation's model calls and tools. */
  hiding?: CallDescription['hiding'];
  /** The number of consumers of a streaming result, for example an HTTP response. Undefined until the first one. */
  consumers?: number;
  /** Whether the SDK reports an abort of the operation in its stream, without the reason. */
  isStreamed?: boolean;
  model?: ModelStream;
  /** Whether a wrapper has started the run, and the SDK has not published the call yet. */
  isUnpublished?: boolean;
}

const operations: WeakMap<Run, Operation> = shared('aiOperations', () => new WeakMap());

export function openOperation(run: Run | undefined): Operation {
  const operation = (run && operations.get(run)) ?? {};
  if (run !== undefined) operations.set(run, operation);
  return operation;
}

/** Leaves a call that the SDK publishes to the wrapper that has started `run`. Returns false if the call is another one. */
export function leaveToWrapper(run: Run | undefined): boolean {
  const operation = run && operations.get(run);
  if (operation?.isUnpublished !== true) return false;
  operation.isUnpublished = false;
  return true;
}

/**
 * Records the base stream of an operation. The SDK tees the base stream for each consumer and keeps the other branch
 * for later consumers. A consumer that leaves cancels only its own branch, so the base stream is never cancelled. The
 * run ends as cancelled when no consumer is left.
 */
export function observedOperation(base: ReadableStream, run: Run): ReadableStream {
  const answer = new AnswerStream(run, operationReader);
  const operation = Object.assign(openOperation(run), { isStreamed: true });
  const leave = (): void => {
    operation.consumers = (operation.consumers ?? 0) - 1;
    // Waits for one turn of the event loop, because the application may read `result.text` next.
    setSoon(() => {
      if (operation.consumers !== 0) return;
      answer.cancel();
      operation.model?.cancelUnlessRead();
    });
  };
  const counting = (stream: ReadableStream): ReadableStream => {
    replaceOwn(stream, 'tee', (tee) => () => {
      const [branch, rest] = Reflect.apply(tee, stream, []) as [ReadableStream, ReadableStream];
      operation.consumers = (operation.consumers ?? 0) + 1;
      return [observedStream(branch, { ...noObserver, cancel: leave }), counting(rest)];
    });
    return stream;
  };
  return counting(observedStream(base, answer));
}

/**
 * Records the stream of a model call. When the consumers of the operation have left, AI SDK 6 still reads the stream to
 * its end. Later versions stop reading without cancelling the stream, and the run ends as cancelled.
 */
export class ModelStream extends AnswerStream {
  readonly #operation: Operation;

  constructor(run: Run) {
    super(run, modelReader);
    const above = currentRun();
    this.#operation = openOperation(above);
    this.#operation.model = this;
    // The SDK uses its own signal for the operation's time limit, which may also expire during a tool call.
    if (this.#operation.isStreamed && above) above.signal = run.signal;
  }

  override chunk(value: unknown): void {
    super.chunk(value);
    if (this.#operation.consumers === 0) this.cancelUnlessRead();
  }

  /** Waits for one turn of the event loop, in which the SDK asks for the next chunk if it still reads. */
  cancelUnlessRead(): void {
    setSoon(() => this.isPending || this.cancel());
  }
}

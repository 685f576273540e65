import { guard } from '../base/guard.ts';
import { defaultLimits } from '../base/limits.ts';
import { Chunks } from '../instrument/follow.ts';
import { abandonment, type Watched } from '../instrument/observer.ts';
import type { Run } from '../run/run.ts';
import { startRun, withRun } from '../run/start-run.ts';
import type { AgentEvent } from './agent-event.ts';
import type { RunPlace } from './run-failed-error.ts';
import { isInRun } from './traced-call.ts';

/**
 * Opens a stream as a run below the current one, which ends when the stream does: with the last state or else the events that
 * came, within the limits of a payload; as interrupted where the stream is left lying. Outside of any run it is just opened.
 */
export async function tracedStream<Stream>(
  name: string,
  inputs: Record<string, unknown>,
  open: (trace: StreamTrace | undefined) => Promise<Stream>,
): Promise<Stream> {
  if (!isInRun()) return open(undefined);
  const run = startRun({ name, runType: 'chain', inputs });
  try {
    return await withRun(run, () => open(new StreamTrace(run, name)));
  } catch (thrown) {
    run.fail(thrown);
    throw thrown;
  }
}

/** Tells a run of the one that it has made on the server, as far as that is known. */
export function tellPlace(run: Run, { runId, threadId }: RunPlace): void {
  const told = Object.entries({ agent_run_id: runId, agent_thread_id: threadId });
  run.set({ metadata: Object.fromEntries(told.filter(([, id]) => id !== undefined)) });
}

/** Follows a stream to the end of the run of its call. No method throws. */
export class StreamTrace implements Watched {
  readonly #run: Run;
  readonly #chunks: Chunks;
  #wasTouched = true;
  /** Whether a read is under way, which can take as long as the run: silence is no neglect then. */
  #isAwaited = false;
  /** The last state, as its text: the values are the reader's, who may change them. */
  #state: string | undefined;

  constructor(run: Run, name: string) {
    this.#run = run;
    this.#chunks = new Chunks({ name }, run);
  }

  get wasTouched(): boolean {
    return this.#wasTouched || this.#isAwaited;
  }

  set wasTouched(value: boolean) {
    this.#wasTouched = value;
  }

  get idleMaxMs(): number {
    return this.#run.sink?.capture.streamIdleMs ?? defaultLimits.streamIdleMs;
  }

  /** The run depends on this stream from now on; it must not be held here. */
  watch(stream: object, place: RunPlace): void {
    if (!this.#run.isOpen) return;
    tellPlace(this.#run, place);
    abandonment.watch(stream, this);
  }

  /** The server's run has become known. */
  placed(place: RunPlace): void {
    tellPlace(this.#run, place);
  }

  /** Its next event is waited for. */
  touch(): void {
    this.#wasTouched = true;
    this.#isAwaited = true;
  }

  took({ event, name, namespace, data }: AgentEvent<unknown>, text: string): void {
    this.#wasTouched = true;
    this.#isAwaited = false;
    if (!this.#run.isOpen) return;
    const [kind] = name.split('|');
    // Whoever has the addresses of `feedback` may use them, also where it is malformed.
    if (kind === 'metadata' || kind === 'feedback' || kind === 'end') return;
    if (event === 'values' && namespace.length === 0) this.#keepState(text);
    else if (this.#state === undefined) guard('clients', () => this.#chunks.push({ event: name, data }));
  }

  end(): void {
    this.#close(() => this.#run.end());
  }

  fail(thrown: unknown): void {
    this.#close(() => this.#run.fail(thrown));
  }

  /** The reader wants no more. */
  cancel(): void {
    this.#close(() => this.#run.cancel());
  }

  abandon(reason: string): void {
    this.#close(() => this.#run.interrupt(reason));
  }

  /** It stands for the events before it, which need not be kept any more. */
  #keepState(text: string): void {
    if (this.#state === undefined) this.#chunks.release();
    this.#state = text;
  }

  #close(end: () => void): void {
    abandonment.unwatch(this);
    if (!this.#run.isOpen) return;
    guard('clients', () => {
      if (this.#state === undefined) this.#chunks.record();
      else this.#run.set({ outputs: JSON.parse(this.#state) });
    });
    this.#chunks.release();
    this.#state = undefined;
    end();
  }
}

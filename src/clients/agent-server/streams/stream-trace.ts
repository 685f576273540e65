import { guard } from '../../../base/guard.ts';
import { abandonment, type Watched } from '../../../instrument/results/observer.ts';
import { Chunks } from '../../../instrument/results/recorder.ts';
import type { Run } from '../../../run/run.ts';

export function recordPlace(run: Run, { runId, threadId }: Place): void {
  const ids = Object.entries({ agent_run_id: runId, agent_thread_id: threadId });
  run.set({ metadata: Object.fromEntries(ids.filter(([, id]) => id !== undefined)) });
}

interface Place {
  readonly runId?: string | undefined;
  readonly threadId?: string | undefined;
}

export interface ReceivedEvent {
  readonly name: string;
  readonly data: unknown;
  /** Returns the data as JSON. Set only for events that contain the main graph's state. */
  readonly state?: (() => string) | undefined;
}

/** Records a stream as one run. No method throws. */
export class StreamTrace implements Watched {
  readonly #run: Run;
  readonly #chunks: Chunks;
  #wasUsed = true;
  /** Whether a read is pending. A stream with a pending read counts as in use. */
  #isReading = false;
  /** The last state, stored as JSON because the application may change the parsed object. */
  #state: string | undefined;
  #place: Place = {};

  constructor(run: Run, name: string) {
    this.#run = run;
    this.#chunks = new Chunks({ name }, run);
  }

  get idleMaxMs(): number {
    return this.#run.capture.streamIdleMs;
  }

  wasUsed(): boolean {
    const wasUsed = this.#wasUsed || this.#isReading;
    this.#wasUsed = false;
    return wasUsed;
  }

  /**
   * Ends the recorded run as interrupted if the stream is garbage-collected. The trace must not keep a reference to the
   * stream.
   */
  watch(stream: object, place: Place): void {
    if (!this.#run.isOpen) return;
    this.#place = place;
    recordPlace(this.#run, place);
    abandonment.watch(stream, this);
  }

  /** Called when a read starts. */
  touch(): void {
    this.#wasUsed = true;
    this.#isReading = true;
  }

  received({ name, data, state }: ReceivedEvent): void {
    this.#wasUsed = true;
    this.#isReading = false;
    if (!this.#run.isOpen) return;
    // Do not record these events, because feedback URLs are credentials.
    if (/^(?:metadata|feedback|end)(?:\||$)/.test(name)) return;
    if (state === undefined) {
      if (this.#state === undefined) guard('clients', () => this.#chunks.push({ event: name, data }));
      return;
    }
    // The last state becomes the recorded output, so earlier events are no longer needed.
    if (this.#state === undefined) this.#chunks.release();
    this.#state = state();
  }

  end(): void {
    this.#close(() => this.#run.end());
  }

  fail(thrown: unknown): void {
    this.#close(() => this.#run.fail(thrown));
  }

  cancel(): void {
    this.#close(() => this.#run.cancel());
  }

  abandon(reason: string): void {
    this.#close(() => this.#run.interrupt(reason));
  }

  #close(end: () => void): void {
    abandonment.unwatch(this);
    if (!this.#run.isOpen) return;
    recordPlace(this.#run, this.#place);
    guard('clients', () => {
      if (this.#state === undefined) this.#chunks.record();
      else this.#run.set({ outputs: JSON.parse(this.#state) });
    });
    this.#chunks.release();
    this.#state = undefined;
    end();
  }
}

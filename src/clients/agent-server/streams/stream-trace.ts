import { guard } from '../../../base/guard.ts';
import { Chunks, type Collector, StreamRecorder } from '../../../instrument/results/recorder.ts';
import { defined } from '../../../payload/fields.ts';
import type { Run } from '../../../run/run.ts';

export function recordPlace(run: Run, { runId, threadId }: Place): void {
  run.set({ metadata: defined({ agent_run_id: runId, agent_thread_id: threadId }) });
}

type Place = Readonly<Partial<Record<'runId' | 'threadId', string | undefined>>>;

export interface ReceivedEvent {
  readonly name: string;
  readonly data: unknown;
  /** Returns the data as JSON. Set only for events that contain the main graph's state. */
  readonly state?: (() => string) | undefined;
}

/** Records a stream as one run. No method throws. */
export class StreamTrace extends StreamRecorder {
  readonly #name: string;
  #place: Place = {};

  constructor(run: Run, name: string) {
    super(run);
    this.#name = name;
    // Creates the collector, so that a stream without events has an empty list of events.
    this.chunk({ name: 'metadata', data: undefined });
  }

  /** Records the ids of the run, and again at the end, because they may arrive later. */
  place(place: Place): void {
    this.#place = place;
    if (this.run.isOpen) recordPlace(this.run, place);
  }

  protected override collect(): Collector {
    const chunks = new Chunks({ name: this.#name }, this.run);
    /** The last state, stored as JSON because the application may change the parsed object. */
    let last: string | undefined;
    const add = ({ name, data, state }: ReceivedEvent): void => {
      // Do not record these events, because feedback URLs are credentials.
      if (/^(?:metadata|feedback|end)(?:\||$)/.test(name)) return;
      if (state !== undefined) {
        // The last state becomes the recorded output, so earlier events are no longer needed.
        chunks.release();
        last = state();
      } else if (last === undefined) chunks.push({ event: name, data });
    };
    return {
      push(event) {
        guard('clients', () => add(event as ReceivedEvent));
        return false;
      },
      record: () => {
        recordPlace(this.run, this.#place);
        if (last === undefined) chunks.record();
        else this.run.set({ outputs: JSON.parse(last) });
      },
    };
  }
}

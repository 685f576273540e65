import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { RunOperation } from '../../receiver/domain/run-message.ts';
import { PROGRAM_ENDED } from '../../receiver/domain/summary.ts';
import { DEFAULT_SCOPE, type Store } from '../../receiver/store/store.ts';

/** Maximum number of open runs to remember. Above this number, the oldest run stays open. */
const OPEN_MAX = 100_000;

/** The open runs of the program that `runspan dev` runs. */
export class ProgramRuns {
  /** Sent with each request of the program and of its child processes, which inherit the variable. */
  readonly id: string = `runspan-dev-${randomUUID()}`;
  /** Start times of the open runs, by run id. */
  readonly #open = new Map<string, string | undefined>();

  /**
   * Whether any runs have arrived. Runs of other programs count, because not all requests of the program can be
   * recognized.
   */
  hasArrived = false;

  /** Called after each request with runs, from any program. */
  received({ headers }: IncomingMessage, operations: readonly RunOperation[]): void {
    this.hasArrived = true;
    // The langsmith package sends the program's id as its API key.
    if (headers['x-runspan-program'] !== this.id && headers['x-api-key'] !== this.id) return;
    for (const { id, fields } of operations) {
      if (fields.end_time !== undefined) this.#open.delete(id);
      else this.#open.set(id, fields.start_time ?? this.#open.get(id));
      if (this.#open.size > OPEN_MAX) this.#open.delete(this.#open.keys().next().value as string);
    }
  }

  /**
   * Ends the runs that are still open. Runs that started after `endTime` belong to processes that outlive the program,
   * and stay open.
   */
  async interrupt(store: Store, endTime: string): Promise<void> {
    const left = [...this.#open].filter(([, startTime]) => startTime === undefined || startTime <= endTime);
    if (left.length === 0) return;
    // The operation is a post, because the patch with the run's own end must take precedence.
    const operations = left.map(([id]): RunOperation => {
      return { kind: 'post', id, fields: { end_time: endTime, error: PROGRAM_ENDED }, attachments: [] };
    });
    await store.apply(DEFAULT_SCOPE, operations);
  }
}

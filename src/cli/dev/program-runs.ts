import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { clock } from '../../base/clock.ts';
import { diagnostics } from '../../base/diagnostics.ts';
import { messageOf } from '../../base/text.ts';
import type { RunOperation } from '../../receiver/domain/run-message.ts';
import { HEARTBEAT_MS, pause } from '../../receiver/http/change-stream.ts';
import { HttpError } from '../../receiver/http/http-error.ts';
import type { Route } from '../../receiver/http/route.ts';
import { DEFAULT_SCOPE, type Store } from '../../receiver/store/store.ts';
import { PROGRAM_ENDED } from '../../run/record.ts';
import { isoTimestamp } from '../../run/time.ts';
import type { TraceFeed } from './trace-watch.ts';

/** Maximum number of open runs to remember for each program. Above this number, the oldest run stays open. */
const OPEN_MAX = 100_000;
/** Maximum number of traces to remember. */
const TRACES_MAX = 10_000;

const PROGRAM_ID = /^runspan-dev-[\da-f-]{36}$/;
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;

/** Returns a new id. It is sent with each request of a program and of its child processes, which inherit the variable. */
export function newProgramId(): string {
  return `runspan-dev-${randomUUID()}`;
}

/** The programs that send runs to this receiver: the program of this command, and those that other commands attach. */
export class Programs {
  readonly own: ProgramRuns = new ProgramRuns(newProgramId());
  readonly #store: Store;
  readonly #attached = new Map<string, ProgramRuns>();
  /** For each trace, whether only programs of other commands have sent its runs. */
  readonly #isOthers = new Map<string, boolean>();
  #isClosed = false;

  constructor(store: Store) {
    this.#store = store;
  }

  /** All traces, except those that only programs of other commands have sent. */
  get ownTraces(): TraceFeed {
    return {
      subscribe: (scope, listener) => this.#store.subscribe(scope, listener),
      outline: async (scope, traceId) => (this.#isOthers.get(traceId) ? [] : this.#store.outline(scope, traceId)),
    };
  }

  /** Routes with which another command follows its program. */
  get routes(): Route[] {
    const path = '/dev/programs/:id';
    return [
      {
        method: 'GET',
        path,
        handle: ({ parameters: { id = '' } }) => {
          if (!PROGRAM_ID.test(id) || this.#attached.has(id))
            throw new HttpError(404, 'Expected the id of a new program');
          const headers = { 'content-type': 'text/event-stream' };
          return { status: 200, headers, content: (closed) => this.#follow(id, closed) };
        },
      },
      {
        method: 'DELETE',
        path,
        admission: 'write',
        handle: async ({ parameters: { id = '' }, search }) => {
          const endTime = search.get('end_time') ?? '';
          if (!TIMESTAMP.test(endTime)) throw new HttpError(422, 'Expected `end_time` to be a time');
          await this.#attached.get(id)?.end(this.#store, endTime);
          return { status: 200, body: {} };
        },
      },
    ];
  }

  /** Whether runs have arrived that may be of this command's program. Not all of its requests can be recognized. */
  hasArrived = false;

  /** Called after each request with runs, from any program. */
  received({ headers }: IncomingMessage, operations: readonly RunOperation[]): void {
    // The langsmith package sends the program's id as its API key.
    const sent = [headers['x-runspan-program'], headers['x-api-key']];
    const id = sent.find((value): value is string => typeof value === 'string' && PROGRAM_ID.test(value));
    const program = id === this.own.id ? this.own : this.#attached.get(id ?? '');
    const traceIds = operations.map((operation) => program?.received(operation) ?? traceOf(operation));
    const isOther = id !== undefined && id !== this.own.id;
    this.hasArrived ||= !isOther;
    for (const traceId of traceIds) {
      const wasOther = this.#isOthers.get(traceId);
      this.#isOthers.delete(traceId);
      this.#isOthers.set(traceId, isOther && wasOther !== false);
      forgetOldest(this.#isOthers, TRACES_MAX);
    }
  }

  /** Stops ending programs. Their commands continue, so that their runs stay open. */
  close(): void {
    this.#isClosed = true;
  }

  /**
   * Yields the changed traces of a program as server-sent events until the program ends. If the client disconnects
   * before, the command of the program was killed, and the program counts as ended.
   */
  async *#follow(id: string, closed: AbortSignal): AsyncGenerator<string> {
    const program = new ProgramRuns(id);
    this.#attached.set(id, program);
    // Another program may add runs to a trace of this program.
    const unsubscribe = this.#store.subscribe(DEFAULT_SCOPE, ({ traceIds }) => program.changed(traceIds));
    try {
      yield ': attached\n\n';
      while (!closed.aborted) {
        const traceIds = program.takeChanged();
        if (traceIds.length > 0) yield `data: ${JSON.stringify({ trace_ids: traceIds })}\n\n`;
        else if (program.isEnded) return;
        else if (!(await program.nextChange(closed))) yield ': no change\n\n';
      }
    } finally {
      this.#attached.delete(id);
      if (!this.#isClosed) await program.end(this.#store, isoTimestamp(clock.nowUs())).catch(logFailure);
      unsubscribe();
    }
  }
}

interface OpenRun {
  readonly traceId: string;
  readonly startTime: string | undefined;
}

/** The traces and the open runs of one program. */
export class ProgramRuns {
  readonly id: string;
  isEnded = false;
  readonly #open = new Map<string, OpenRun>();
  readonly #traceIds = new Set<string>();
  readonly #changed = new Set<string>();
  #wake = (): void => {};
  #ending: Promise<void> | undefined;

  constructor(id: string) {
    this.id = id;
  }

  /** Returns the trace of the run. */
  received(operation: RunOperation): string {
    const { id, fields } = operation;
    const traceId = traceOf(operation, this.#open);
    if (fields.end_time !== undefined) this.#open.delete(id);
    else this.#open.set(id, { traceId, startTime: fields.start_time ?? this.#open.get(id)?.startTime });
    forgetOldest(this.#open, OPEN_MAX);
    this.#traceIds.delete(traceId);
    this.#traceIds.add(traceId);
    forgetOldest(this.#traceIds, TRACES_MAX);
    this.changed([traceId]);
    return traceId;
  }

  /** Remembers which traces have changed. Traces of other programs are ignored. */
  changed(traceIds: readonly string[]): void {
    for (const traceId of traceIds) if (this.#traceIds.has(traceId)) this.#changed.add(traceId);
    forgetOldest(this.#changed, TRACES_MAX);
    if (this.#changed.size > 0) this.#wake();
  }

  takeChanged(): string[] {
    const traceIds = [...this.#changed];
    this.#changed.clear();
    return traceIds;
  }

  /** Resolves with whether a trace has changed or the program has ended within the time of a heartbeat. */
  async nextChange(closed: AbortSignal): Promise<boolean> {
    let isWoken = false;
    await pause(HEARTBEAT_MS, closed, (done) => {
      this.#wake = () => {
        isWoken = true;
        done();
      };
    });
    return isWoken || closed.aborted;
  }

  /**
   * Ends the runs that are still open. Runs that started after `endTime` belong to processes that outlive the program,
   * and stay open. Later calls return the same promise.
   */
  end(store: Store, endTime: string): Promise<void> {
    this.#ending ??= this.#interrupt(store, endTime);
    return this.#ending;
  }

  async #interrupt(store: Store, endTime: string): Promise<void> {
    const left = [...this.#open].filter(([, { startTime }]) => startTime === undefined || startTime <= endTime);
    // The operation is a post, because the patch with the run's own end must take precedence.
    const operations = left.map(([id]): RunOperation => {
      return { kind: 'post', id, fields: { end_time: endTime, error: PROGRAM_ENDED }, attachments: [] };
    });
    if (left.length > 0) await store.apply(DEFAULT_SCOPE, operations);
    this.changed(left.map(([, { traceId }]) => traceId));
    this.isEnded = true;
    this.#wake();
  }
}

/** Returns the trace of a run. A run without a `trace_id` belongs to the trace of its parent. */
function traceOf({ id, fields }: RunOperation, open: ReadonlyMap<string, OpenRun> = new Map()): string {
  const parentId = fields.parent_run_id;
  return fields.trace_id ?? open.get(id)?.traceId ?? open.get(parentId ?? '')?.traceId ?? parentId ?? id;
}

function forgetOldest(remembered: Map<string, unknown> | Set<string>, most: number): void {
  if (remembered.size > most) remembered.delete(remembered.keys().next().value as string);
}

function logFailure(error: unknown): void {
  diagnostics.error(`the open runs of a program cannot be ended: ${messageOf(error)}`);
}

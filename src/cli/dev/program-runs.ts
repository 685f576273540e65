import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { forgetOldest } from '../../base/forget-oldest.ts';
import { identityOf } from '../../receiver/domain/identity.ts';
import type { RunOperation } from '../../receiver/domain/run-message.ts';
import { HttpError } from '../../receiver/http/http-error.ts';
import type { Route } from '../../receiver/http/route.ts';
import { DEFAULT_SCOPE, type Store } from '../../receiver/store/store.ts';
import { END_REASON, PROGRAM_ENDED } from '../../run/record.ts';
import type { TraceFeed } from './trace-watch.ts';

/** Maximum number of open runs to remember for each program. Above this number, the oldest run stays open. */
const OPEN_MAX = 100_000;
const TRACES_MAX = 10_000;
/** Maximum number of programs to remember. The open runs of a forgotten program stay open. */
const PROGRAMS_MAX = 1_000;

const PROGRAM_ID = /^runspan-dev-[\da-f-]{36}$/;
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;

/** Returns a new id. It is sent with each request of a program and of its child processes, which inherit the variable. */
export function newProgramId(): string {
  return `runspan-dev-${randomUUID()}`;
}

/** The programs that send runs to this receiver: the program of this command, and those of other commands. */
export class Programs {
  readonly ownId: string = newProgramId();
  readonly #store: Store;
  /** Programs by id. The one that has sent nothing for longest comes first. */
  readonly #programs = new Map<string, Program>();
  /** For each trace, whether only programs of other commands have sent its runs. */
  readonly #isOthers = new Map<string, boolean>();
  /** The traces of runs whose ids are other names of their traces. */
  readonly #traces = new Map<string, string>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** All traces, except those that only programs of other commands have sent. */
  get ownTraces(): TraceFeed {
    return {
      subscribe: (scope, listener) => this.#store.subscribe(scope, listener),
      outline: async (scope, id) =>
        this.#isOthers.get(this.#traces.get(id) ?? id) ? [] : this.#store.outline(scope, id),
    };
  }

  /** The route with which another command ends its program. It returns the traces of the program. */
  get route(): Route {
    return {
      method: 'DELETE',
      path: '/query/programs/:id',
      admission: 'write',
      handle: async ({ parameters: { id = '' }, search }) => {
        const endTime = search.get('end_time') ?? '';
        if (!TIMESTAMP.test(endTime)) throw new HttpError(422, 'Expected `end_time` to be a time');
        return { status: 200, body: { trace_ids: await this.end(id, endTime) } };
      },
    };
  }

  /** Whether runs have arrived that may be of this command's program. Not all of its requests can be recognized. */
  hasArrived = false;

  /** Called after each request with runs, from any program. */
  received({ headers }: IncomingMessage, operations: readonly RunOperation[]): void {
    // The langsmith package sends the program's id as its API key.
    const sent = [headers['x-runspan-program'], headers['x-api-key']];
    const id = sent.find((value): value is string => typeof value === 'string' && PROGRAM_ID.test(value));
    const program = id === undefined ? undefined : this.#latest(id);
    const traceIds = operations.map((operation) => (program ? note(operation, program) : traceOf(operation)));
    const isOther = id !== undefined && id !== this.ownId;
    this.hasArrived ||= !isOther;
    for (const [at, traceId] of traceIds.entries()) {
      const { id: runId = traceId } = operations[at] ?? {};
      if (runId !== traceId) this.#traces.set(runId, traceId);
      forgetOldest(this.#traces, TRACES_MAX);
      const wasOther = this.#isOthers.get(traceId);
      this.#isOthers.delete(traceId);
      this.#isOthers.set(traceId, isOther && wasOther !== false);
      forgetOldest(this.#isOthers, TRACES_MAX);
    }
  }

  /**
   * Ends the open runs of a program and returns its traces, the latest last. Runs that started after `endTime` belong to
   * processes that outlive the program, and stay open.
   */
  async end(id: string, endTime: string): Promise<string[]> {
    const program = this.#programs.get(id);
    this.#programs.delete(id);
    if (program === undefined) return [];
    const left = [...program.open].filter(([, { startTime }]) => startTime === undefined || startTime <= endTime);
    // The operation is a post, because the patch with the run's own end must take precedence.
    const operations = left.map(([id]): RunOperation => {
      const fields = { end_time: endTime, error: PROGRAM_ENDED, extra: { [END_REASON]: 'interrupted' } } as const;
      return { kind: 'post', id, fields, attachments: [] };
    });
    if (left.length > 0) await this.#store.apply(DEFAULT_SCOPE, operations);
    return [...program.traceIds];
  }

  #latest(id: string): Program {
    const program = this.#programs.get(id) ?? { open: new Map(), traceIds: new Set() };
    this.#programs.delete(id);
    this.#programs.set(id, program);
    forgetOldest(this.#programs, PROGRAMS_MAX);
    return program;
  }
}

interface OpenRun {
  readonly traceId: string;
  readonly startTime: string | undefined;
}

/** What a program has sent. */
interface Program {
  readonly open: Map<string, OpenRun>;
  readonly traceIds: Set<string>;
}

function note(operation: RunOperation, { open, traceIds }: Program): string {
  const { id, fields } = operation;
  const traceId = traceOf(operation, open);
  if (fields.end_time !== undefined) open.delete(id);
  else open.set(id, { traceId, startTime: fields.start_time ?? open.get(id)?.startTime });
  forgetOldest(open, OPEN_MAX);
  traceIds.delete(traceId);
  traceIds.add(traceId);
  forgetOldest(traceIds, TRACES_MAX);
  return traceId;
}

/** Returns the trace of a run, which names it, or else is below an open run or a root. */
function traceOf({ id, fields }: RunOperation, open: ReadonlyMap<string, OpenRun> = new Map()): string {
  const { traceId, otelTraceId, parentId } = identityOf(fields);
  const named = traceId ?? otelTraceId;
  return named ?? open.get(id)?.traceId ?? open.get(parentId ?? '')?.traceId ?? parentId ?? id;
}

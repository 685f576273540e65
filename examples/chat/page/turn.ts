import { ApiError, api, type TraceHeaders } from './api.ts';
import { beginningOf } from './beginning.ts';
import { uuidv7 } from './uuid.ts';

/** The run of a turn, as the server hands it on to tracing. */
export interface TurnRecord {
  readonly id: string;
  readonly dotted_order: string;
  readonly name: 'page turn';
  readonly run_type: 'chain';
  readonly start_time: string;
  readonly end_time: string;
  readonly inputs: { readonly message: string };
  readonly outputs: {
    readonly answer?: string;
    readonly status: string;
    readonly first_text_ms: number | null;
    readonly total_ms: number;
    readonly thread_id: string;
    readonly agent_run_id: string | null;
  };
  readonly error?: string;
}

/** Of an answer, what is told of it: all of it is on the run of the agent. */
const ANSWER_CHARS_MAX = 10_000;

/** Whether the server has nowhere to put turns, and said so. */
let isUntraced = false;

/** Turns that are under way: left ones are told of when the page is. */
const open = new Set<Turn>();
globalThis.addEventListener?.('pagehide', () => {
  for (const turn of open) turn.leave();
});

/**
 * A turn as the reader has it, from the message to the end of the answer: the root of its trace, which the run of the agent is below.
 * Headers of `headers` tell the server so.
 */
export class Turn {
  readonly id: string = uuidv7();
  readonly #threadId: string;
  readonly #message: string;
  readonly #startMs: number = nowMs();
  readonly #order: string;
  #firstTextMs: number | undefined;
  #agentRunId: string | undefined;

  constructor(threadId: string, message: string) {
    this.#threadId = threadId;
    this.#message = message;
    this.#order = `${iso(this.#startMs).replace(/[-:.]/g, '')}${this.id}`;
    open.add(this);
  }

  get headers(): TraceHeaders {
    return isUntraced ? {} : { 'runspan-trace': this.#order };
  }

  /** The run of the agent that answers, which it is known by from now on. */
  set agentRunId(id: string) {
    this.#agentRunId = id;
  }

  get agentRunId(): string | undefined {
    return this.#agentRunId;
  }

  /** The first of the answer is there to be read. */
  firstText(): void {
    this.#firstTextMs ??= nowMs() - this.#startMs;
  }

  /** Tells of the turn, once. */
  async end(status: string, told: { readonly answer?: string; readonly error?: string | undefined }): Promise<void> {
    if (!open.delete(this) || isUntraced) return;
    try {
      await api.recordTurn(this.#record(status, told));
    } catch (failure) {
      // It is lost, which is no matter of the reader's.
      if (failure instanceof ApiError && failure.status === 404) isUntraced = true;
    }
  }

  leave(): void {
    if (open.delete(this) && !isUntraced) api.recordTurnAtLeave(this.#record('left', {}));
  }

  #record(status: string, { answer = '', error }: Parameters<Turn['end']>[1]): TurnRecord {
    const endMs = nowMs();
    return {
      id: this.id,
      dotted_order: this.#order,
      name: 'page turn',
      run_type: 'chain',
      start_time: iso(this.#startMs),
      end_time: iso(endMs),
      inputs: { message: this.#message },
      outputs: {
        ...(answer && { answer: beginningOf(answer, ANSWER_CHARS_MAX) }),
        status,
        first_text_ms: this.#firstTextMs === undefined ? null : Math.round(this.#firstTextMs),
        total_ms: Math.round(endMs - this.#startMs),
        thread_id: this.#threadId,
        agent_run_id: this.#agentRunId ?? null,
      },
      ...(error === undefined ? {} : { error }),
    };
  }
}

function nowMs(): number {
  return performance.timeOrigin + performance.now();
}

/** With microseconds, as stamps of runs have them. */
function iso(ms: number): string {
  const micros = Math.floor((ms % 1) * 1_000);
  return new Date(ms).toISOString().replace('Z', `${`${micros}`.padStart(3, '0')}Z`);
}

import { ApiError, api } from './api.ts';
import { EventReader } from './event-reader.ts';
import type { ProtocolEvent } from './protocol.ts';
import { AS_CHANGES, WholeStates } from './whole-states.ts';

export type Connection = 'closed' | 'connecting' | 'open' | 'reconnecting';

export interface ThreadStreamOptions {
  readonly threadId: string;
  /** Called before each connection, also the later ones; the stream waits for it until the signal aborts. */
  readonly beforeConnect: (signal: AbortSignal) => Promise<void>;
  /** Events, each once, in the order of the thread. */
  readonly onEvents: (events: readonly ProtocolEvent[]) => void;
  readonly onConnection: (connection: Connection) => void;
  /** The server does not give this thread, and will not. */
  readonly onRefusal: (error: ApiError) => void;
}

const CHANNELS = ['messages', 'tools', 'lifecycle', 'values', 'checkpoints', 'input', 'custom'];
/** The server sends something each 5 s. */
const SILENCE_MS_MAX = 20_000;
const BACK_OFF_MS_MIN = 250;
const BACK_OFF_MS_MAX = 10_000;

/** Milliseconds before the next attempt, of those that have failed since something came; `random` is of 0 to 1. */
export function backOffMs(failures: number, random: number): number {
  const longest = Math.min(BACK_OFF_MS_MAX, BACK_OFF_MS_MIN * 2 ** failures);
  return Math.round((longest * (1 + random)) / 2);
}

/**
 * The events of a thread, from its first one that is kept until it is closed. A connection that breaks, or in which nothing comes, is made
 * again, and goes on after the last event that has come.
 */
export class ThreadStream {
  readonly #options: ThreadStreamOptions;
  readonly #closed = new AbortController();
  /** Ends the wait for the next attempt. */
  #hurry: (() => void) | undefined;
  #failures = 0;
  #lastSeq: number | undefined;
  readonly #unnumbered = new Set<string>();

  constructor(options: ThreadStreamOptions) {
    this.#options = options;
  }

  /** Ends when it is closed. */
  async run(): Promise<void> {
    const { signal } = this.#closed;
    const hurry = (): void => this.#hurry?.();
    addEventListener('online', hurry, { signal });
    this.#options.onConnection('connecting');
    while (!signal.aborted) {
      try {
        await this.#connect();
      } catch (error) {
        if (error instanceof ApiError && isFinal(error)) {
          this.#options.onRefusal(error);
          this.close();
        }
        // Whatever else it was is tried again, and the reader is told that it is.
      }
      if (signal.aborted) return;
      this.#options.onConnection('reconnecting');
      await this.#pause(backOffMs(this.#failures, Math.random()));
      this.#failures += 1;
    }
  }

  close(): void {
    this.#closed.abort();
    this.#hurry?.();
    this.#options.onConnection('closed');
  }

  async #connect(): Promise<void> {
    const silence = new AbortController();
    const signal = AbortSignal.any([this.#closed.signal, silence.signal]);
    let timer = setTimeout(() => silence.abort(), SILENCE_MS_MAX);
    try {
      await this.#options.beforeConnect(signal);
      const body = await api.stream(
        this.#options.threadId,
        { channels: CHANNELS, ...AS_CHANGES, ...(this.#lastSeq === undefined ? {} : { since: this.#lastSeq }) },
        signal,
      );
      const reader = new EventReader();
      const states = new WholeStates();
      const decoder = new TextDecoder();
      const pieces = body.getReader();
      for (let piece = await pieces.read(); !piece.done; piece = await pieces.read()) {
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENCE_MS_MAX);
        const read = reader.read(decoder.decode(piece.value, { stream: true }));
        const events = read.map((event) => states.whole(event)).filter((event) => this.#isNew(event));
        if (this.#closed.signal.aborted) return;
        this.#failures = 0;
        this.#options.onConnection('open');
        if (events.length > 0) this.#options.onEvents(events);
      }
    } finally {
      clearTimeout(timer);
      silence.abort();
    }
  }

  #isNew({ seq, event_id }: ProtocolEvent): boolean {
    if (seq !== undefined) {
      if (this.#lastSeq !== undefined && seq <= this.#lastSeq) return false;
      this.#lastSeq = seq;
      return true;
    }
    if (event_id === undefined) return true;
    const isNew = !this.#unnumbered.has(event_id);
    this.#unnumbered.add(event_id);
    return isNew;
  }

  async #pause(ms: number): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    await new Promise<void>((resolve) => {
      this.#hurry = resolve;
      timer = setTimeout(resolve, ms);
    });
    clearTimeout(timer);
    this.#hurry = undefined;
  }
}

function isFinal({ status }: ApiError): boolean {
  return status >= 400 && status < 500 && status !== 408 && status !== 429;
}

import { type Signal, signal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { problemOf } from './api.ts';
import { onChanges } from './changes.ts';

/** Pause after a read, as a multiple of the read's duration. The pause makes slow values refresh less often. */
const PAUSE_FACTOR = 3;
const PAUSE_MS_MIN = 100;

/** Runs a task, but never twice at once. Requests during the task or its pause cause one further execution. */
export class Refresh {
  readonly #task: (signal: AbortSignal) => Promise<void>;
  readonly #pauseMsMin: number;
  readonly #abort = new AbortController();
  #isRunning = false;
  #isRequested = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(task: (signal: AbortSignal) => Promise<void>, pauseMsMin = PAUSE_MS_MIN) {
    this.#task = task;
    this.#pauseMsMin = pauseMsMin;
  }

  request(): void {
    if (this.#abort.signal.aborted) return;
    this.#isRequested = true;
    if (!this.#isRunning && this.#timer === undefined) void this.#run();
  }

  close(): void {
    this.#abort.abort();
    clearTimeout(this.#timer);
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    this.#isRequested = false;
    const startMs = performance.now();
    try {
      await this.#task(this.#abort.signal);
    } finally {
      this.#isRunning = false;
      const pauseMs = Math.max(this.#pauseMsMin, (performance.now() - startMs) * PAUSE_FACTOR);
      if (!this.#abort.signal.aborted) this.#timer = setTimeout(() => this.#resume(), pauseMs);
    }
  }

  #resume(): void {
    this.#timer = undefined;
    if (this.#isRequested) void this.#run();
  }
}

export interface LiveOptions {
  /** Returns whether a change to these traces makes the value stale. If it is missing, the value is read once. */
  readonly isStale?: (traceIds: ReadonlySet<string> | undefined) => boolean;
  /** Delay before the first read, in milliseconds. Set a delay if the key changes often. */
  readonly delayMs?: number;
  /** Minimum pause between two reads, in milliseconds. Set a pause if the value rarely differs. */
  readonly pauseMsMin?: number;
  /** How long the receiver may repeat an answer, in milliseconds. The value is read once more so long after a change. */
  readonly repeatedMs?: number;
}

/** Options of statistics. All changes concern them. Stores keep them for 2 seconds. */
export const STATISTICS: LiveOptions = { isStale: () => true, repeatedMs: 2_100 };

/** Returns the time, rounded down so that all pages ask for the same statistics, which a store then reads once. */
export function roundedNowMs(): number {
  return Math.floor(Date.now() / 2_000) * 2_000;
}

/** Returns an `isStale` function for a value that depends on a single trace. */
export function changesOfTrace(traceId: string): (traceIds: ReadonlySet<string> | undefined) => boolean {
  return (traceIds) => traceIds === undefined || traceIds.has(traceId);
}

/**
 * A value from the API that is read again after changes. If a read fails, keeps the last value and reads again when the
 * event stream reconnects.
 */
export class LiveValue<Value> {
  readonly value: Signal<Value | undefined>;
  readonly problem: Signal<string | undefined> = signal(undefined);
  readonly #refresh: Refresh;
  readonly #unsubscribe: () => void;
  readonly #timer: ReturnType<typeof setTimeout> | undefined;
  #again: ReturnType<typeof setTimeout> | undefined;

  constructor(
    read: (signal: AbortSignal) => Promise<Value>,
    { isStale = () => false, delayMs, pauseMsMin, repeatedMs }: LiveOptions = {},
    initial?: Value,
  ) {
    this.value = signal(initial);
    this.#refresh = new Refresh(async (signal) => {
      try {
        const value = await read(signal);
        if (signal.aborted) return;
        this.value.value = value;
        this.problem.value = undefined;
      } catch (error) {
        if (!signal.aborted) this.problem.value = problemOf(error) ?? this.problem.value;
      }
    }, pauseMsMin);
    this.#unsubscribe = onChanges((traceIds) => {
      const isReconnected = traceIds === undefined && this.problem.value !== undefined;
      if (!isReconnected && !isStale(traceIds)) return;
      this.reload();
      clearTimeout(this.#again);
      if (repeatedMs !== undefined) this.#again = setTimeout(() => this.reload(), repeatedMs);
    });
    if (delayMs === undefined) this.reload();
    else this.#timer = setTimeout(() => this.reload(), delayMs);
  }

  reload(): void {
    this.#refresh.request();
  }

  close(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#again);
    this.#unsubscribe();
    this.#refresh.close();
  }
}

export interface Live<Value> {
  readonly value: Value | undefined;
  readonly problem: string | undefined;
  readonly reload: () => void;
}

/**
 * Reads a value for a component, and reads the value again when `key` changes. Returns the previous value until the new
 * value arrives. If `key` is undefined, nothing is read.
 */
export function useLive<Value>(
  key: string | undefined,
  read: (signal: AbortSignal) => Promise<Value>,
  options?: LiveOptions,
): Live<Value> {
  const last = useRef<LiveValue<Value> | undefined>(undefined);
  const live = useMemo(
    () => (key === undefined ? undefined : new LiveValue(read, options, last.current?.value.peek())),
    [key],
  );
  last.current = live;
  useEffect(() => () => live?.close(), [live]);
  return { value: live?.value.value, problem: live?.problem.value, reload: () => live?.reload() };
}

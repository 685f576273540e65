/** An event as it goes into the log of its thread. */
export interface NewEvent {
  /** As filters name it: `messages`, `tools`, `custom:progress`. */
  readonly channel: string;
  readonly namespace: readonly string[];
  /** A JSON object that has `method` and `params`; number and id are added when it is sent. */
  readonly body: string;
}

export interface StoredEvent extends NewEvent {
  /** Grows with each event of the thread, across its runs, and is never given twice. */
  readonly seq: number;
}

export interface EventPage {
  readonly events: readonly StoredEvent[];
  /** Events up to this number are no longer kept; 0 where all are. */
  readonly droppedThrough: number;
}

/** A thread whose run nobody works on any more. */
export interface CutRun {
  readonly threadId: string;
  readonly runId: string;
}

/** Where a run waits for a thread that another has: before those that wait already, or behind them. */
export type Place = 'next' | 'last';

/** What becomes of a run. One that is cancelled while it waits is told so when it has the thread. */
export type Lease = 'held' | 'waiting' | 'cancelled' | 'lost';

/** `events`: there are more. `run`: the thread's run is to be cancelled, or has ended, with an event that tells so. */
export type Wake = (what: 'events' | 'run') => void;

/**
 * What is known of the threads that are in use: their events, for whoever joins later, and which run each has under way. Instances that share
 * one see the same, and who waits for a thread. A run is held by a lease, also while it waits, so that what becomes of it is told when its
 * process is gone.
 *
 * Limits: of a thread the last events are kept, by number and by bytes, and those that outlast the process as long as it is used every few days.
 */
export interface SessionStore {
  /** How often a run is to be renewed, in milliseconds, well within the time for which a lease holds. */
  readonly renewMs: number;

  /** Adds events at the end, in this order, all or none. */
  append(threadId: string, events: readonly NewEvent[]): Promise<void>;

  /** At most `limit` events that come after a number, oldest first. A thread that is unknown has none. */
  read(threadId: string, after: number, limit: number): Promise<EventPage>;

  /** The number of the last event, 0 where there is none. */
  lastSeq(threadId: string): Promise<number>;

  /** Calls `wake` when something has happened to the thread, in any instance, until what it gives is called. */
  watch(threadId: string, wake: Wake): () => void;

  /**
   * Takes the thread for a run. Gives the id of the run that has it: the same, or the one that is before it. With a place, the run waits for that
   * one; nothing is given where `WAITING_MAX` do so already.
   */
  claim(threadId: string, runId: string, place?: Place): Promise<string | undefined>;

  /** To be called each `renewMs`. `lost` where the lease had run out and was taken away: its events are not wanted any more. */
  renew(threadId: string, runId: string): Promise<Lease>;

  /**
   * Adds the last event of a run, and takes its thread from it, which goes to the first of those that wait, at once: whoever sees that it has ended
   * can start the next. A run that waits does so no longer. Does nothing, and gives false, where the run neither has the thread nor waits.
   */
  end(threadId: string, runId: string, event: NewEvent): Promise<boolean>;

  /** The run that has the thread. */
  activeRun(threadId: string): Promise<string | undefined>;

  /** Has the run told by `renew` that it is to end; false where it neither has the thread nor waits for it. */
  cancel(threadId: string, runId: string): Promise<boolean>;

  /**
   * Takes away the leases that have run out. Each is given to one caller, who ends the run for it: until then no other run gets the
   * thread, so that what is told of the two stays in order. Where the caller is cut as well, it is given to another.
   *
   * Of those that wait, each is given when the end of the one before has brought it the thread: what is told of runs that are cut together is in
   * their order. Behind a run that goes on it is given `renewMs` later, to each caller until one ends it.
   */
  takeCutRuns(): Promise<readonly CutRun[]>;

  /** Forgets a thread: its events, its run and those that wait. */
  delete(threadId: string): Promise<void>;

  close(): Promise<void>;
}

/** Bounds of a store, which tests and unusual installations change. */
export interface SessionLimits {
  /** How long a run is thought to be worked on without a sign of it. @default 15 000 */
  readonly leaseMs: number;
  /** @default 4 000 */
  readonly renewMs: number;
  /** Of one thread; the oldest go. @default 20 000 */
  readonly eventsMax: number;
  /** Of the bodies of a thread's events; the oldest go. @default 64 MiB */
  readonly bytesMax: number;
  /** After so long without a sign of life the events of a thread are forgotten; its history is not. @default 7 days */
  readonly idleMs: number;
}

export const SESSION_LIMITS: SessionLimits = {
  leaseMs: 15_000,
  renewMs: 4_000,
  eventsMax: 20_000,
  bytesMax: 64 * 1024 * 1024,
  idleMs: 7 * 24 * 3_600_000,
};

/** Runs that wait for one thread; more are refused. */
export const WAITING_MAX = 10;

/** How often threads are looked for that nobody uses. */
export const IDLE_CHECK_MS: number = 3_600_000;

/**
 * The number before a thread's first one: the time in microseconds. Readers remember the numbers that they have seen; a log that begins anew, after a restart without a store
 * or after a thread was deleted, has none of them.
 */
export function firstSeq(nowMs: number): number {
  return nowMs * 1_000;
}

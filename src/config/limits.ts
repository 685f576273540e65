/** Limits to set with `configure({ limits })`. `docs/configuration.md` has the defaults and what happens at each limit. */
export interface Limits {
  /** Maximum time that an ended run waits for its batch to fill, in milliseconds. */
  lingerMs: number;
  /** Maximum time that the start of a run waits for the run's end, in milliseconds. A longer run is sent twice. */
  startDelayMs: number;
  /** Maximum number of runs per request. A limit in the service's `/info` response takes precedence. */
  batchRuns: number;
  /** Maximum size of a request body, in bytes. A larger run is sent in a request of its own. */
  batchBytes: number;
  /** Maximum number of undelivered runs. At the limit, new traces are dropped with the reason `queue_full`. */
  queueRuns: number;
  /** Maximum total size of undelivered runs, in bytes. At the limit, new traces are dropped with the reason `queue_full`. */
  queueBytes: number;
  /** Maximum number of text characters in one payload. A string that exceeds the limit is shortened in the middle. */
  payloadCharacters: number;
  /** Maximum total size of a run's attachments, in bytes. Further attachments are omitted, and a warning is logged. */
  attachmentBytes: number;
  /** Maximum time for a request, from connecting to the end of the response, in milliseconds. */
  requestTimeoutMs: number;
  /** Age at which an undelivered run is dropped, in milliseconds. Applies if `durability` is `memory`. */
  ageMs: number;
  /** Maximum disk space per process, in bytes. At the limit, further runs stay in memory. */
  spoolBytes: number;
  /** Age at which an undelivered run is dropped, in milliseconds. Applies if `durability` is not `memory`. */
  spoolAgeMs: number;
}

export const defaultLimits: Readonly<Limits> = {
  lingerMs: 250,
  startDelayMs: 2_000,
  batchRuns: 500,
  batchBytes: 20 * 1024 * 1024,
  queueRuns: 100_000,
  queueBytes: 64 * 1024 * 1024,
  payloadCharacters: 10 * 1024 * 1024,
  attachmentBytes: 20 * 1024 * 1024,
  requestTimeoutMs: 30_000,
  ageMs: 900_000,
  spoolBytes: 256 * 1024 * 1024,
  spoolAgeMs: 86_400_000,
};

/** Limits that no option sets. runspan's own tests change them. */
export const defaultTuning = {
  requestsInFlight: 4,
  /** Maximum number of open runs. Above this number, the oldest open run is sent as incomplete, and again at its end. */
  openRuns: 10_000,
  /** Age at which an open run is sent as incomplete, in milliseconds. Also the longest time for which a trace is held. */
  openRunAgeMs: 3_600_000,
  retryDelayMs: 500,
  retryDelayMaxMs: 30_000,
  /** Maximum time that a finished process stays alive to deliver its runs, in milliseconds. */
  exitFlushMs: 2_000,
};

export type Tuning = typeof defaultTuning;

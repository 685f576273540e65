/** All configurable limits. Set them with `configure({ limits })`. */
export interface Limits {
  /** Milliseconds that the first run of a batch waits in the queue for more runs to join the batch. */
  lingerMs: number;
  /**
   * Milliseconds that the start of a run waits for the end of the run, so that both are sent as one record. If the run
   * is still open after this time, its start is sent first and its end later. If the value is 0, a start waits only
   * `lingerMs`. `flush` sends all starts immediately. `RUNSPAN_START_DELAY_MS`
   */
  startDelayMs: number;
  /** Maximum number of runs per request, unless the `/info` response sets another limit. */
  batchRuns: number;
  /**
   * Maximum body bytes per request, unless the `/info` response sets another limit. A run that exceeds this size is
   * sent in a request without other runs.
   */
  batchBytes: number;
  /** Maximum number of concurrent requests. At the limit, runs wait in the queue. */
  requestsInFlight: number;
  /** Maximum number of undelivered runs. At the limit, new traces are refused and counted as `queue_full`. */
  queueRuns: number;
  /**
   * Maximum total bytes of undelivered runs, counting one byte per character of text. At the limit, new traces are
   * refused.
   */
  queueBytes: number;
  /** Maximum nesting depth of one payload. Deeper values are replaced with a marker. */
  payloadDepth: number;
  /**
   * Maximum number of items per array and of keys per object. All items or keys beyond this number are replaced with
   * one marker.
   */
  payloadWidth: number;
  /** Maximum number of values in one payload. Values beyond this number are replaced with markers. */
  payloadNodes: number;
  /**
   * Maximum total characters of text in one payload. If a text would exceed this total, its middle is replaced with a
   * marker.
   */
  payloadBytes: number;
  /**
   * Maximum total bytes of the attachments of one run. An attachment that would exceed this total is left out, and a
   * warning is logged.
   */
  attachmentBytes: number;
  /**
   * Maximum number of open runs. When the number of open runs exceeds this limit, the oldest open run is sent as
   * incomplete. If the run ends later, its end is sent too.
   */
  openRuns: number;
  /** Age in milliseconds at which an open run is sent as incomplete. If the run ends later, its end is sent too. */
  openRunAgeMs: number;
  /** Milliseconds without a read after which the run of a stream, generator or lazy thenable ends as interrupted. */
  streamIdleMs: number;
  /** Maximum milliseconds to open a connection. */
  connectTimeoutMs: number;
  /** Maximum milliseconds of a request, from connecting to the last byte of the response. */
  requestTimeoutMs: number;
  /** Back-off in milliseconds after the first failure, with full jitter. Each further failure doubles the back-off. */
  retryDelayMs: number;
  /** Maximum back-off in milliseconds. */
  retryDelayMaxMs: number;
  /**
   * Age in milliseconds at which an undelivered run is dropped if `durability` is `memory`. Pauses that the service
   * requested do not count towards the age.
   */
  ageMs: number;
  /**
   * Milliseconds that an outage must last before queued runs are written to disk. This limit is not used if
   * `durability` is `memory`.
   */
  spillAfterMs: number;
  /** Maximum bytes on disk per process. At the limit, further runs stay in memory. */
  spoolBytes: number;
  /** Age in milliseconds at which an undelivered run is dropped if `durability` is not `memory`. */
  spoolAgeMs: number;
  /** Maximum number of concurrent runs in simple ingestion. */
  simpleInFlight: number;
  /** Maximum requests per second in simple ingestion. */
  simpleRequestsPerSecond: number;
  /** Maximum milliseconds that delivery delays the end of a process that has no other work left. */
  exitFlushMs: number;
}

const MIB = 1024 * 1024;

export const defaultLimits: Readonly<Limits> = {
  lingerMs: 250,
  startDelayMs: 2_000,
  batchRuns: 100,
  batchBytes: 20 * MIB,
  requestsInFlight: 4,
  queueRuns: 100_000,
  queueBytes: 64 * MIB,
  payloadDepth: 64,
  payloadWidth: 10_000,
  payloadNodes: 100_000,
  payloadBytes: 10 * MIB,
  attachmentBytes: 20 * MIB,
  openRuns: 10_000,
  openRunAgeMs: 3_600_000,
  streamIdleMs: 900_000,
  connectTimeoutMs: 5_000,
  requestTimeoutMs: 30_000,
  retryDelayMs: 500,
  retryDelayMaxMs: 30_000,
  ageMs: 900_000,
  spillAfterMs: 5_000,
  spoolBytes: 256 * MIB,
  spoolAgeMs: 86_400_000,
  simpleInFlight: 4,
  simpleRequestsPerSecond: 50,
  exitFlushMs: 2_000,
};

/** Maximum delay of `setTimeout`. With a longer delay, `setTimeout` fires immediately. */
export const DELAY_MAX_MS: number = 2 ** 31 - 1;

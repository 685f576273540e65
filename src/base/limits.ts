/** All configurable limits, set with `configure({ limits })`. */
export interface Limits {
  /** How long a batch's first run waits in the queue for more runs, in milliseconds. */
  lingerMs: number;
  /**
   * How long a run's start waits for the run's end, in milliseconds, so that both are sent as one record. If the run is
   * still open afterwards, its start is sent first and its end later. With 0, a start waits only `lingerMs`. `flush`
   * sends all starts immediately. `RUNSPAN_START_DELAY_MS`
   */
  startDelayMs: number;
  /** Maximum number of runs per request, unless the `/info` response sets another limit. */
  batchRuns: number;
  /**
   * Maximum body bytes per request, unless the `/info` response sets another limit. Larger runs are sent alone, one per
   * request.
   */
  batchBytes: number;
  /** Maximum number of concurrent requests. At the limit, runs wait in the queue. */
  requestsInFlight: number;
  /** Maximum number of undelivered runs. At the limit, new traces are refused and counted as `queue_full`. */
  queueRuns: number;
  /**
   * Maximum total bytes of undelivered runs, where each character counts as one byte. At the limit, new traces are
   * refused.
   */
  queueBytes: number;
  /** Maximum nesting depth of one payload. Deeper values are replaced with a marker. */
  payloadDepth: number;
  /** Maximum number of items per array and keys per object. Any others are replaced with one marker. */
  payloadWidth: number;
  /** Maximum number of values in one payload. Any others are replaced with markers. */
  payloadNodes: number;
  /**
   * Maximum total characters of text in one payload. A text that would exceed this total is cut in the middle, with a
   * marker.
   */
  payloadBytes: number;
  /**
   * Maximum total bytes of a run's attachments. An attachment that would exceed this total is left out with a warning.
   */
  attachmentBytes: number;
  /**
   * Maximum number of open runs. Above `openRuns`, the oldest open run is sent as incomplete. Its end is still sent if
   * it ends later.
   */
  openRuns: number;
  /** Age at which an open run is sent as incomplete, in milliseconds. Its end is still sent if it ends later. */
  openRunAgeMs: number;
  /**
   * The run of a stream, generator or lazy thenable ends as interrupted after this many milliseconds without a read.
   */
  streamIdleMs: number;
  /** Maximum time to open a connection, in milliseconds. */
  connectTimeoutMs: number;
  /** Maximum time for a request, from connecting to the last byte of the response, in milliseconds. */
  requestTimeoutMs: number;
  /** Back-off after the first failure, in milliseconds, with full jitter. Doubles with each further failure. */
  retryDelayMs: number;
  /** Maximum back-off, in milliseconds. */
  retryDelayMaxMs: number;
  /**
   * Age at which an undelivered run is dropped if `durability` is `memory`, in milliseconds. Pauses that the service
   * requested do not count.
   */
  ageMs: number;
  /**
   * How long an outage lasts before queued runs are written to disk, in milliseconds. Not used if `durability` is
   * `memory`.
   */
  spillAfterMs: number;
  /** Maximum bytes on disk per process. At the limit, further runs stay in memory. */
  spoolBytes: number;
  /** Age at which an undelivered run is dropped if `durability` is not `memory`, in milliseconds. */
  spoolAgeMs: number;
  /** Maximum number of concurrent runs in simple ingestion. */
  simpleInFlight: number;
  /** Maximum requests per second in simple ingestion. */
  simpleRequestsPerSecond: number;
  /** Maximum time by which delivery delays the end of a process that has no other work left, in milliseconds. */
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

/** Maximum delay that `setTimeout` supports. Timers with a longer delay fire immediately. */
export const DELAY_MAX_MS: number = 2 ** 31 - 1;

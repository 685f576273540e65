/** Configurable limits. Set them with `configure({ limits })`. */
export interface Limits {
  /** Maximum time that an ended run waits for its batch to fill, in milliseconds. */
  lingerMs: number;
  /**
   * How long the exporter waits for a started run to end, in milliseconds. A run that ends within this time is sent
   * once. A longer run is sent twice: at its start and at its end. If set to 0, the exporter waits only `lingerMs`.
   * `flush` sends all started runs immediately. `RUNSPAN_START_DELAY_MS`
   */
  startDelayMs: number;
  /** Maximum number of runs per request. A limit in the service's `/info` response takes precedence. */
  batchRuns: number;
  /**
   * Maximum size of a request body, in bytes. A limit in the service's `/info` response takes precedence. The
   * bodies of all requests in flight have at most a quarter of `queueBytes`. A larger run is sent in a request of its
   * own.
   */
  batchBytes: number;
  /** Maximum number of concurrent requests. */
  requestsInFlight: number;
  /** Maximum number of undelivered runs. At the limit, new traces are dropped with the reason `queue_full`. */
  queueRuns: number;
  /**
   * Maximum total size of undelivered runs, in bytes. Request bodies count with the size in which they are kept: compressed
   * while the service is unavailable. In runs that wait outside a body, each character counts as one byte. At the limit,
   * new traces are dropped with the reason `queue_full`.
   */
  queueBytes: number;
  /** Maximum nesting depth of one payload. Deeper values are replaced with a marker. */
  payloadDepth: number;
  /** Maximum number of items per array and keys per object. Further items and keys are replaced with one marker. */
  payloadWidth: number;
  /** Maximum number of values in one payload. Further values are replaced with markers. */
  payloadNodes: number;
  /** Maximum number of text characters in one payload. A string that exceeds the limit is shortened in the middle. */
  payloadBytes: number;
  /**
   * Maximum total size of a run's attachments, in bytes. Attachments beyond this size are omitted, and a warning is
   * logged.
   */
  attachmentBytes: number;
  /**
   * Maximum number of open runs. Above this number, the oldest open run is sent as incomplete. When the run ends, the
   * exporter sends the run again.
   */
  openRuns: number;
  /**
   * Age at which an open run is sent as incomplete, in milliseconds. When the run ends, the exporter sends the run
   * again.
   */
  openRunAgeMs: number;
  /**
   * Maximum time between two reads from a traced stream, generator or lazy thenable, in milliseconds. After this time,
   * the run ends as interrupted. Also the maximum time to wait for the end of an OpenTelemetry span whose call has ended.
   */
  streamIdleMs: number;
  /** Maximum time to open a connection, in milliseconds. */
  connectTimeoutMs: number;
  /** Maximum time for a request, from connecting to the end of the response, in milliseconds. */
  requestTimeoutMs: number;
  /**
   * Retry delay after the first failed request, in milliseconds. The delay doubles with each further failure, and is
   * randomized with full jitter.
   */
  retryDelayMs: number;
  /** Maximum retry delay, in milliseconds. */
  retryDelayMaxMs: number;
  /**
   * Age at which an undelivered run is dropped, in milliseconds. Applies if `durability` is `memory`. Pauses requested
   * by the service, and times in which it refuses every run, do not count towards the age.
   */
  ageMs: number;
  /**
   * How long the service must be unavailable before queued runs are written to disk, in milliseconds. Has no effect if
   * `durability` is `memory`.
   */
  spillAfterMs: number;
  /** Maximum disk space per process, in bytes. At the limit, further runs stay in memory. */
  spoolBytes: number;
  /**
   * Age at which an undelivered run is dropped, in milliseconds. Applies if `durability` is `spill` or `write-ahead`.
   */
  spoolAgeMs: number;
  /** Maximum number of concurrent requests to a service without multipart ingestion. */
  simpleInFlight: number;
  /** Maximum number of requests per second to a service without multipart ingestion. */
  simpleRequestsPerSecond: number;
  /** Maximum time that a finished process stays alive to deliver its runs, in milliseconds. */
  exitFlushMs: number;
}

const MIB = 1024 * 1024;

export const defaultLimits: Readonly<Limits> = {
  lingerMs: 250,
  startDelayMs: 2_000,
  batchRuns: 500,
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

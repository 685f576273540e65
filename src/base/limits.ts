/** All configurable limits. Set them with `configure({ limits })`. */
export interface Limits {
  /** Wait after the first queued run before a batch is sent, so that the start and the end of a run are sent together. */
  lingerMs: number;
  /**
   * Time for which the start of a run waits for its end, so that both are sent as one record. A run that is open for longer is
   * sent, and its end follows. 0 sends a start after `lingerMs`. `flush` sends all starts. `RUNSPAN_START_DELAY_MS`
   */
  startDelayMs: number;
  /** Maximum runs per request. The `/info` of the service overrides it. */
  batchRuns: number;
  /** Maximum body bytes per request. The `/info` of the service overrides it. A larger run is sent alone. */
  batchBytes: number;
  /** Maximum concurrent requests. Further batches wait in the queue. */
  requestsInFlight: number;
  /** Maximum runs that are recorded but not delivered. At the limit, new traces are refused and counted as `queue_full`. */
  queueRuns: number;
  /** Like `queueRuns`, in bytes of content and of request bodies. Text counts one byte per character. */
  queueBytes: number;
  /** Maximum nesting of one payload. Deeper values are replaced by a marker. */
  payloadDepth: number;
  /** Maximum items of one array or keys of one object. The rest is replaced by a marker. */
  payloadWidth: number;
  /** Maximum values in one payload. The rest is replaced by a marker. */
  payloadNodes: number;
  /** Maximum characters of text in one payload. Long text is cut in the middle, with a marker. */
  payloadBytes: number;
  /** Maximum bytes of all attachments of one run. An attachment beyond the limit is left out, which is logged. */
  attachmentBytes: number;
  /**
   * Maximum number of runs that have not ended. Beyond it, the oldest is sent as incomplete; its end is sent later,
   * when `end` is called.
   */
  openRuns: number;
  /** Age at which an open run is sent as incomplete. Its end is sent later, when `end` is called. */
  openRunAgeMs: number;
  /** Time after which the run of a stream, generator or lazy thenable that is no longer read ends as interrupted. */
  streamIdleMs: number;
  /** Time limit for establishing a connection. */
  connectTimeoutMs: number;
  /** Time limit of a request, from connecting to the last byte of the response. */
  requestTimeoutMs: number;
  /** First back-off after a failure. It doubles with each further failure, with full jitter. */
  retryDelayMs: number;
  /** Maximum back-off. */
  retryDelayMaxMs: number;
  /** Age at which an undelivered run is dropped as `expired`. Pauses that the service requested are not counted. */
  ageMs: number;
  /** Length of an outage after which waiting runs are written to disk, if `durability` allows it. */
  spillAfterMs: number;
  /** Maximum bytes on disk per process. Beyond it, runs stay in memory. */
  spoolBytes: number;
  /** Age at which a run on disk is dropped as `expired`. */
  spoolAgeMs: number;
  /** Simple ingestion: maximum concurrent runs. */
  simpleInFlight: number;
  /** Simple ingestion: maximum requests per second. */
  simpleRequestsPerSecond: number;
  /** Maximum time that delivery keeps the process alive when it ends naturally. */
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

/** The longest delay of a timer. `setTimeout` fires at once for a longer one. */
export const DELAY_MAX_MS: number = 2 ** 31 - 1;

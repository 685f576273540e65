/** What is bounded, and by how much. Each may be given in `configure({ limits })`. */
export interface Limits {
  /** Wait after the first queued run before a batch is sent, so that a run's start and end travel together. */
  lingerMs: number;
  /**
   * Time for which the start of a run waits for its end, so that both are sent as one record. A run that is open for longer is
   * sent, and its end follows. 0 sends a start after `lingerMs`. `flush` sends all starts. `RUNSPAN_START_DELAY_MS`
   */
  startDelayMs: number;
  /** Runs per request; what the service's `/info` says takes its place. */
  batchRuns: number;
  /** Bytes of body per request, likewise. A single larger run goes alone. */
  batchBytes: number;
  /** Requests under way at once; further batches wait in the queue. */
  requestsInFlight: number;
  /** Runs recorded and not yet delivered. At the limit new traces are refused whole and counted as `queue_full`. */
  queueRuns: number;
  /** Bytes of their content, and of request bodies that are kept for a retry. Text counts one byte per character. */
  queueBytes: number;
  /** Levels of nesting in one payload; what lies deeper is cut with a marker. */
  payloadDepth: number;
  /** Items of one array or keys of one object; the rest is cut with a marker. */
  payloadWidth: number;
  /** Values in one payload; the rest is cut with a marker. */
  payloadNodes: number;
  /** Characters of text in one payload; long text is cut in the middle, with a marker. */
  payloadBytes: number;
  /** Bytes of all attachments of one run; one that would go beyond is left out, and a line says so. */
  attachmentBytes: number;
  /**
   * Maximum number of runs that have not ended. Beyond it, the oldest is sent as incomplete; its end is sent later,
   * when `end` is called.
   */
  openRuns: number;
  /** Age at which an open run is sent as incomplete. Its end is sent later, when `end` is called. */
  openRunAgeMs: number;
  /** Time for which a stream, generator or lazy thenable may be left half-way; its run then ends as interrupted. */
  streamIdleMs: number;
  /** Time to establish a connection. */
  connectTimeoutMs: number;
  /** Time for a whole request, from connecting to the last byte of the answer. */
  requestTimeoutMs: number;
  /** First back-off after a failure; it doubles with each further one, with full jitter. */
  retryDelayMs: number;
  /** Longest back-off. */
  retryDelayMaxMs: number;
  /** Age at which an undelivered run is given up as `expired`; time spent waiting because the service asked for it is not counted. */
  ageMs: number;
  /** Time that the service may be away before what waits for it goes to the disk, where durability has one. */
  spillAfterMs: number;
  /** Bytes on disk, of what one process keeps there; beyond it nothing more is written, and runs stay in memory. */
  spoolBytes: number;
  /** Age at which a run that is on disk is given up as `expired`. */
  spoolAgeMs: number;
  /** Simple ingestion: runs under way at once. */
  simpleInFlight: number;
  /** Simple ingestion: requests per second. */
  simpleRequestsPerSecond: number;
  /** Time that delivery may hold the process when it ends by itself. */
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

/** No delay may be longer: a larger one makes `setTimeout` fire at once. */
export const DELAY_MAX_MS: number = 2 ** 31 - 1;

import { type Channel, channel } from 'node:diagnostics_channel';

/** The reason why a run was dropped. The words are part of the public interface. */
export type DropReason = 'queue_full' | 'too_large' | 'rejected' | 'expired' | 'corrupt' | 'closed';

/** A dropped run, as passed to `onDrop`. Fields that a damaged file of an earlier process no longer contains are empty. */
export interface DroppedRun {
  readonly id: string;
  readonly traceId: string;
  readonly name: string;
  /** The cause, for example the status of the response. */
  readonly detail?: string;
}

/**
 * The number of runs at each stage. Each run is counted once:
 *
 *     created + recovered = open + queued + inFlight + spooled + sent + dropped
 *
 * The other fields describe the health of delivery. The object is a copy and does not change.
 */
export interface Stats {
  created: number;
  /** Recovered from the files of an earlier process, including runs that could not be read. */
  recovered: number;
  /** Started, not ended. */
  open: number;
  /** Ended, with a part that waits to be sent. */
  queued: number;
  /** Ended, with all remaining parts in flight. */
  inFlight: number;
  /** Ended, stored on disk. */
  spooled: number;
  /** The service has accepted its end. */
  sent: number;
  /** A part of the run was dropped. */
  dropped: number;
  /** `dropped` by reason. */
  droppedByReason: Record<DropReason, number>;
  /** Left out by sampling. Not a loss, and not part of the sum. */
  sampledOut: number;
  /** Requests sent, retries included, by endpoint kind. */
  requests: { multipart: number; simple: number };
  /** Records in memory that wait or are in flight. */
  backlog: Backlog;
  /** Duration of requests. Undefined before the first request has ended. */
  latency: Latency | undefined;
  /** The last failed request, if any. It stays when delivery works again. */
  lastError: DeliveryError | undefined;
}

export interface Backlog {
  /** Bytes, limited by `limits.queueBytes`. The sum over all exporters. */
  bytes: number;
  /**
   * Age of the oldest record in milliseconds, including pauses that the service requested; 0 without records. The maximum over
   * all exporters.
   */
  oldestMs: number;
}

/**
 * Milliseconds from sending a request to the end of its response or its failure, over the latest 500 requests of each
 * exporter. Percentiles are of nearest rank: with fewer than 100 requests, `p99Ms` is the maximum.
 */
export interface Latency {
  p50Ms: number;
  p99Ms: number;
}

/** A request that was refused or got no response. The latest over all exporters. */
export interface DeliveryError {
  /** ISO 8601, UTC. */
  at: string;
  /** The status, or the error of the connection. Contains no key, payload or URL credentials. */
  message: string;
}

let read: (() => Stats) | undefined;

/** Registers the function that sums over the exporters of the process. Called when the composition root is loaded. */
export function registerStats(reader: () => Stats): void {
  read = reader;
}

/** Returns the result of `stats()`, or undefined if the composition root is not loaded. */
export function currentStats(): Stats | undefined {
  return read?.();
}

/**
 * Messages on channels of `node:diagnostics_channel`, by channel name. A channel without subscribers costs nothing. Subscribers
 * are called synchronously. Their errors are uncaught exceptions, as on every channel.
 */
export interface ChannelMessages {
  /** A request with runs has ended, with or without a response. */
  'runspan:request:end': RequestMessage;
  /** A run was dropped. */
  'runspan:run:dropped': DropMessage;
  /** Requests started to fail. */
  'runspan:delivery:outage': OutageMessage;
  /** The first runs were accepted after an outage. */
  'runspan:delivery:recovery': RecoveryMessage;
}

export interface RequestMessage {
  /** Origin of the service. */
  readonly endpoint: string;
  /** `multipart` contains a batch, `simple` the start or the end of one run. */
  readonly kind: 'multipart' | 'simple';
  /** The status of the response. Undefined without a response. */
  readonly status: number | undefined;
  /** The failure. Undefined if the service accepted the request. */
  readonly error: string | undefined;
  /** Milliseconds from sending the request to the end of the response or the failure. */
  readonly durationMs: number;
  /** Number of records. */
  readonly runs: number;
  /** Size of the body in bytes, as sent. */
  readonly bytes: number;
}

export interface DropMessage {
  /** Origin of the service. */
  readonly endpoint: string;
  readonly reason: DropReason;
  readonly run: DroppedRun;
}

export interface OutageMessage {
  /** Origin of the service. */
  readonly endpoint: string;
  readonly error: string;
}

export interface RecoveryMessage {
  /** Origin of the service. */
  readonly endpoint: string;
  /** Milliseconds since the outage was published. */
  readonly durationMs: number;
}

// Referenced here, because an unreferenced channel is collected together with its subscribers.
const channels: { readonly [Name in keyof ChannelMessages]: Channel } = {
  'runspan:request:end': channel('runspan:request:end'),
  'runspan:run:dropped': channel('runspan:run:dropped'),
  'runspan:delivery:outage': channel('runspan:delivery:outage'),
  'runspan:delivery:recovery': channel('runspan:delivery:recovery'),
};

let isPublishing = false;

/** Publishes the message. `messageOf` is not called without subscribers. */
export function publish<Name extends keyof ChannelMessages>(name: Name, messageOf: () => ChannelMessages[Name]): void {
  // A subscriber that traces could cause further messages without end.
  if (isPublishing || !channels[name].hasSubscribers) return;
  isPublishing = true;
  try {
    channels[name].publish(messageOf());
  } finally {
    isPublishing = false;
  }
}

/** Calls the listener with every message until the returned function is called. */
export function subscribe<Name extends keyof ChannelMessages>(
  name: Name,
  listener: (message: ChannelMessages[Name]) => void,
): () => void {
  const onMessage = (message: unknown): void => listener(message as ChannelMessages[Name]);
  channels[name].subscribe(onMessage);
  return () => void channels[name].unsubscribe(onMessage);
}

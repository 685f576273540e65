import { type Channel, channel } from 'node:diagnostics_channel';

/** The reason why a run was dropped. The names are part of the public interface. */
export type DropReason = 'queue_full' | 'too_large' | 'rejected' | 'expired' | 'corrupt' | 'closed';

/** A dropped run, which `onDrop` receives. A field is empty if a damaged file no longer contains the field. */
export interface DroppedRun {
  readonly id: string;
  readonly traceId: string;
  readonly name: string;
  /** The cause, for example the status of the response. */
  readonly detail?: string;
}

/**
 * Number of runs at each stage. Each run is counted at exactly one stage:
 *
 *     created + recovered = open + queued + inFlight + spooled + sent + dropped
 *
 * The other fields describe the health of delivery. The object is a copy and does not change.
 */
export interface Stats {
  created: number;
  /** Runs recovered from the files of an earlier process, including unreadable runs. */
  recovered: number;
  /** Runs that have started but not ended. */
  open: number;
  /** Ended runs with data that waits to be sent. */
  queued: number;
  /** Ended runs whose remaining data is being sent. */
  inFlight: number;
  /** Ended runs that are stored on disk. */
  spooled: number;
  /** Runs whose end the service has accepted. */
  sent: number;
  /** Runs that were dropped completely or in part. */
  dropped: number;
  /** Number of dropped runs for each reason. */
  droppedByReason: Record<DropReason, number>;
  /** Runs left out by sampling. These runs are not part of the sum. */
  sampledOut: number;
  /** Number of requests sent, including retries, by kind. */
  requests: { multipart: number; simple: number };
  /** Records in memory that wait to be sent or are being sent. */
  backlog: Backlog;
  /** Durations of requests. Undefined until the first request has ended. */
  latency: Latency | undefined;
  /** The last failed request, also after delivery works again. Undefined if no request has failed. */
  lastError: DeliveryError | undefined;
}

export interface Backlog {
  /** Total bytes of all exporters. `limits.queueBytes` limits each exporter. */
  bytes: number;
  /**
   * Age in milliseconds of the oldest record of all exporters, including pauses that the service requested. The age is
   * 0 if there are no records.
   */
  oldestMs: number;
}

/**
 * Milliseconds from sending a request to the end of its response or its failure, over the latest 500 requests of each
 * exporter. Percentiles use the nearest rank, so `p99Ms` is the maximum if there are fewer than 100 requests.
 */
export interface Latency {
  p50Ms: number;
  p99Ms: number;
}

/** The latest request of all exporters that was refused or got no response. */
export interface DeliveryError {
  /** ISO 8601, UTC. */
  at: string;
  /** The response status or the connection error. Contains no key, payload or URL credentials. */
  message: string;
}

let read: (() => Stats) | undefined;

/** Registers the function that returns the stats of all exporters. Called when the composition root is loaded. */
export function registerStats(reader: () => Stats): void {
  read = reader;
}

/** Returns the result of `stats()`, or undefined if the composition root is not loaded. */
export function currentStats(): Stats | undefined {
  return read?.();
}

/**
 * Messages on channels of `node:diagnostics_channel`, by channel name. A channel without subscribers costs nothing.
 * Subscribers are called synchronously. An error that a subscriber throws is an uncaught exception.
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
  /** A `multipart` request contains a batch. A `simple` request contains the start or the end of one run. */
  readonly kind: 'multipart' | 'simple';
  /** The response status. Undefined if no response arrived. */
  readonly status: number | undefined;
  /** The reason of the failure. Undefined if the service accepted the request. */
  readonly error: string | undefined;
  /** Milliseconds from sending the request to the end of the response or the failure. */
  readonly durationMs: number;
  /** Number of run records in the request. */
  readonly runs: number;
  /** Number of body bytes that were sent. */
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
  /** Milliseconds between the outage message and this message. */
  readonly durationMs: number;
}

// These references keep the channels and their subscribers from being garbage-collected.
const channels: { readonly [Name in keyof ChannelMessages]: Channel } = {
  'runspan:request:end': channel('runspan:request:end'),
  'runspan:run:dropped': channel('runspan:run:dropped'),
  'runspan:delivery:outage': channel('runspan:delivery:outage'),
  'runspan:delivery:recovery': channel('runspan:delivery:recovery'),
};

let isPublishing = false;

/** Publishes a message. `messageOf` is called only if the channel has subscribers. */
export function publish<Name extends keyof ChannelMessages>(name: Name, messageOf: () => ChannelMessages[Name]): void {
  // A subscriber that traces could otherwise cause an endless loop of messages.
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

import type { Channel } from 'node:diagnostics_channel';
import { channel } from '../base/node.ts';

/** The reason why a run was dropped. */
export type DropReason = 'queue_full' | 'too_large' | 'rejected' | 'expired' | 'corrupt' | 'closed';

/**
 * A dropped run, as passed to `onDrop`. A field is empty if the run was read from a damaged file that lacks the field.
 */
export interface DroppedRun {
  readonly id: string;
  readonly traceId: string;
  readonly name: string;
  /** The cause of the drop, for example the HTTP status of the service's response. */
  readonly detail?: string;
}

/**
 * Number of runs at each stage. Each run is counted at exactly one stage:
 *
 *     created + recovered = open + queued + inFlight + spooled + sent + dropped
 *
 * `stats()` returns a copy that is not updated later.
 */
export interface Stats {
  created: number;
  /** Runs that were found in the files of an earlier process, including unreadable runs. */
  recovered: number;
  /** Runs that have started but not ended. */
  open: number;
  /** Ended runs that wait to be sent. */
  queued: number;
  /** Ended runs that are being sent. */
  inFlight: number;
  /** Ended runs that are stored on disk. */
  spooled: number;
  /** Runs whose end the service has accepted. */
  sent: number;
  /** Runs that were dropped completely or in part. */
  dropped: number;
  /** Number of dropped runs for each reason. */
  droppedByReason: Record<DropReason, number>;
  /** Runs left out by sampling. Not part of `created`. */
  sampledOut: number;
  /** Number of requests sent, including retries, by kind. */
  requests: { multipart: number; simple: number };
  /** The records in memory that wait to be sent or are being sent. */
  backlog: Backlog;
  /** Durations of requests, or undefined until the first request has ended. */
  latency: Latency | undefined;
  /** The last failed request, even if delivery has recovered since then, or undefined if no request has failed. */
  lastError: DeliveryError | undefined;
}

/** The run records that wait for delivery. */
export interface Backlog {
  /** Total bytes of all exporters. `limits.queueBytes` applies to each exporter, not to the total. */
  bytes: number;
  /** Age in milliseconds of the oldest record of all exporters, or 0 if there are no records. */
  oldestMs: number;
}

/**
 * Durations of the latest 500 requests of each exporter. The duration of a request ends with the last byte of the
 * response, or when the request fails. Percentiles use the nearest rank, so `p99Ms` is the maximum if there are fewer
 * than 100 requests.
 */
export interface Latency {
  p50Ms: number;
  p99Ms: number;
}

/** The latest failed request of all exporters. */
export interface DeliveryError {
  /** ISO 8601 timestamp in UTC. */
  at: string;
  /** The response status or the connection error. The text contains no key, payload or URL credentials. */
  message: string;
}

let read: (() => Stats) | undefined;

export function registerStats(reader: () => Stats): void {
  read = reader;
}

export function currentStats(): Stats | undefined {
  return read?.();
}

/**
 * Messages on channels of `node:diagnostics_channel`, by channel name. Subscribers are called synchronously. An error
 * that a subscriber throws is an uncaught exception.
 */
export interface ChannelMessages {
  /** Published when a request with runs has ended, with or without a response. */
  'runspan:request:end': RequestMessage;
  /** Published when a run was dropped. */
  'runspan:run:dropped': DropMessage;
  /** Published when requests start to fail. */
  'runspan:delivery:outage': OutageMessage;
  /** Published when the first runs are accepted after an outage. */
  'runspan:delivery:recovery': RecoveryMessage;
}

/** The message when a request with runs has ended. */
export interface RequestMessage {
  /** Origin of the service. */
  readonly endpoint: string;
  /** A `multipart` request contains a batch. A `simple` request contains the start or the end of one run. */
  readonly kind: 'multipart' | 'simple';
  /** The response status, or undefined if no response arrived. */
  readonly status: number | undefined;
  /** The reason for the failure, or undefined if the service accepted the request. */
  readonly error: string | undefined;
  /** Milliseconds from sending the request to the end of the response or the failure. */
  readonly durationMs: number;
  /** Number of run records in the request. */
  readonly runs: number;
  /** Number of body bytes that were sent. */
  readonly bytes: number;
}

/** The message when a run was dropped. */
export interface DropMessage {
  /** Origin of the service. */
  readonly endpoint: string;
  readonly reason: DropReason;
  readonly run: DroppedRun;
}

/** The message when requests start to fail. */
export interface OutageMessage {
  /** Origin of the service. */
  readonly endpoint: string;
  readonly error: string;
}

/** The message when the service accepts runs again. */
export interface RecoveryMessage {
  /** Origin of the service. */
  readonly endpoint: string;
  /** Milliseconds from the first failed request of the outage to the first accepted request. */
  readonly durationMs: number;
}

// Keeps a reference to each channel. A channel without a reference could be garbage-collected together with its
// subscribers.
const channels: { readonly [Name in keyof ChannelMessages]: Channel } = {
  'runspan:request:end': channel('runspan:request:end'),
  'runspan:run:dropped': channel('runspan:run:dropped'),
  'runspan:delivery:outage': channel('runspan:delivery:outage'),
  'runspan:delivery:recovery': channel('runspan:delivery:recovery'),
};

let isPublishing = false;

export function publish<Name extends keyof ChannelMessages>(name: Name, messageOf: () => ChannelMessages[Name]): void {
  // If the subscriber is traced, its run may publish a message, which would start an endless loop.
  if (isPublishing || !channels[name].hasSubscribers) return;
  isPublishing = true;
  try {
    channels[name].publish(messageOf());
  } finally {
    isPublishing = false;
  }
}

export function subscribe<Name extends keyof ChannelMessages>(
  name: Name,
  listener: (message: ChannelMessages[Name]) => void,
): () => void {
  const onMessage = (message: unknown): void => listener(message as ChannelMessages[Name]);
  channels[name].subscribe(onMessage);
  return () => void channels[name].unsubscribe(onMessage);
}
